"""Interpreters of Python on this machine: on PATH, and where pyenv and the manylinux images keep theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ASK = "import sys, sysconfig; print(*sys.version_info[:2], sep='.'); print(sysconfig.get_path('include'))"


def find_python(versions: Iterable[str], *, headers: bool = False) -> Path | None:
    """The first interpreter that is found of some versions, like "3.12"; `headers`: one that can build modules."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in versions:
        on_path = shutil.which(f"python{version}")
        images = Path("/opt/python").glob(f"cp{version.replace('.', '')}-*/bin/python{version}")
        for place in [
            *([on_path] if on_path else []),
            *sorted(pyenv.glob(f"{version}.*/bin/python{version}")),
            *images,
        ]:
            asked = subprocess.run([place, "-c", ASK], capture_output=True, text=True, check=False)
            answer = asked.stdout.splitlines()  # none from a shim of pyenv without that version
            if asked.returncode == 0 and answer[0] == version and (not headers or Path(answer[1], "Python.h").exists()):
                return Path(place)
    return None
