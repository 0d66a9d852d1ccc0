"""Attributes that are computed when they are first used."""

from __future__ import annotations

import subprocess
import sys

from rankwood.lazily import cached_property

FORK = """
import os, threading, warnings
from rankwood.lazily import cached_property

warnings.simplefilter("ignore")  # of a fork with threads, which is the point
begun, end = threading.Event(), threading.Event()

class Model:
    slow = True

    @cached_property
    def value(self):
        if self.slow:
            begun.set()
            end.wait()
        return 7

threading.Thread(target=lambda: Model().value, daemon=True).start()
begun.wait()  # a thread is in the middle of it
child = os.fork()
if child == 0:
    model = Model()
    model.slow = False
    os._exit(model.value)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""


class Counted:
    """How often its value was asked for."""

    n = 0

    @cached_property
    def value(self):
        """What comes of it."""
        self.n += 1
        return [self.n]


def test_it_is_computed_once_for_each():
    one, other = Counted(), Counted()
    assert one.value is one.value
    assert (one.n, other.n) == (1, 0)
    assert other.value == [1]
    assert Counted.value.__doc__ == "What comes of it."


def test_a_forked_process_does_not_wait_for_a_thread_that_it_does_not_have():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("7", "")
