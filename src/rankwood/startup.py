"""Ctrl-C while the command starts, when an exception would print a traceback or be lost in an import."""

from __future__ import annotations

import os
import signal


def stop_quietly(number: int, frame: object) -> None:
    """Signal handler that prints one line and ends the process at once, since no work has begun."""
    os.write(2, b"rankwood: interrupted\n")
    os._exit(130)


def begin() -> None:
    """Let Ctrl-C end the process with one line, unless it is ignored, as in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_quietly)


def ready() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, which commands can handle."""
    if signal.getsignal(signal.SIGINT) is stop_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)
