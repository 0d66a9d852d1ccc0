"""Ctrl-C while the command starts, where an exception would be a traceback, or lost in an import."""

from __future__ import annotations

import os
import signal


def stop_quietly(number: int, frame: object) -> None:
    """Say so and end at once: nothing has begun."""
    os.write(2, b"rankwood: interrupted\n")
    os._exit(130)


def begin() -> None:
    """From here on Ctrl-C ends the process with one line; unless it is ignored, as in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_quietly)


def ready() -> None:
    """From here on it is a KeyboardInterrupt, which commands have a say in."""
    if signal.getsignal(signal.SIGINT) is stop_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)
