"""JDKs of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path


def jdks() -> dict[int, Path]:
    """Folders of the JDKs from 17 on, by version: JAVA_HOME, that of javac, and those that lie beside them."""
    compilers = [shutil.which("javac"), shutil.which("bin/javac", path=os.environ.get("JAVA_HOME", ""))]
    homes = [Path(compiler).resolve().parents[1] for compiler in compilers if compiler]
    found: dict[int, Path] = {}
    for home in [home for one in homes for home in [one, *one.parent.iterdir()] if (home / "bin/javac").exists()]:
        said = subprocess.run([home / "bin/javac", "-version"], capture_output=True, text=True, check=True)
        version = int(re.findall(r"javac (\d+)", said.stdout + said.stderr)[0])
        if version >= 17 and (home / "include" / "jni.h").exists():
            found.setdefault(version, home)
    return dict(sorted(found.items()))
