"""The `rankwood` command as a process of its own."""

from __future__ import annotations

import signal

from rankwood import startup


def run() -> None:
    """Run the command. Ctrl-C is one line from the first moment on; when a reader such as `head` has enough, it ends
    quietly."""
    startup.begin()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from rankwood.cli import main

    main()


if __name__ == "__main__":
    run()
