"""Entry point of the `rankwood` command."""

from __future__ import annotations

import signal

from rankwood import startup


def run() -> None:
    """Run the command.

    From its start on, Ctrl-C prints one line instead of a traceback. When a reader such as `head` closes the pipe, the
    command ends quietly.
    """
    startup.begin()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from rankwood.cli import main

    main()


if __name__ == "__main__":
    run()
