"""Ctrl-C: one line and status 130, from the first moment on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PRESS = "os.kill(os.getpid(), signal.SIGINT)"


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_command_that_has_nothing_to_say(rankwood, models, data_file, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwood.evaluation.evaluator.evaluate", interrupted)
    outcome = rankwood("evaluate", *models, "--data", data_file)
    assert (outcome.status, outcome.err) == (130, "rankwood: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_while_modules_are_imported():
    # a module that the command line needs, and that Ctrl-C falls into
    code = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            {PRESS}
sys.meta_path.insert(0, Finder())
sys.argv = ["rankwood", "--version"]
from rankwood.__main__ import run
run()
"""
    outcome = run_python(code)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (130, "", "rankwood: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_what_ctrl_c_does_at_the_start_and_later():
    start = "import os, signal; from rankwood import startup; "
    assert run_python(f"{start}startup.begin(); {PRESS}; print(1)").returncode == 130
    later = run_python(f"{start}startup.begin(); startup.ready()\ntry:\n {PRESS}\nexcept KeyboardInterrupt: print(1)")
    assert later.stdout == "1\n"
    ignored = f"{start}signal.signal(signal.SIGINT, signal.SIG_IGN); startup.begin(); {PRESS}; print(1)"
    assert run_python(ignored).stdout == "1\n"


def test_signals_are_left_alone_in_this_process(rankwood):
    before = signal.getsignal(signal.SIGINT)
    assert rankwood("--version").status == 0
    assert signal.getsignal(signal.SIGINT) is before
