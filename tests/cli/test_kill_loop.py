"""A few kills by tools/kill-loop: what it says of hundreds must be true of some."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rankwood as rw

TOOL = Path(__file__).resolve().parents[2] / "tools" / "kill-loop"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="LOOKS AT PROCESSES IN LINUX'S WAY")
def test_a_few_kills():
    pytest.importorskip("uvicorn", reason="UVICORN ABSENT: pip install 'rankwood[serve]'")
    pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
    told = os.environ | {"PYTHONPATH": str(Path(rw.__file__).parents[1])}
    command = [sys.executable, TOOL, "--kills", "8", "--seed", "7", "--only", "train", "tables", "convert", "serve"]
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^8 kills, seed 7: 0 problems$", done.stdout, re.M), done.stdout
