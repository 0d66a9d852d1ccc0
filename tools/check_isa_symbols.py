"""Check that no translation unit compiled for a wider instruction set offers code to the others.

A function with weak linkage (a template of the standard library, an inline function) is kept once for the whole
module. Were the copy compiled for AVX2 kept, a CPU without AVX2 would crash in code that looks portable.

    python tools/check_isa_symbols.py BUILD_DIR
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Weak symbols that hold no code of ours; clang's last one is two calls, the end of an exception in a noexcept function.
HARMLESS = ("__asan", "__ubsan", "__odr_asan", "DW.ref.", ".asan", "typeinfo", "vtable", "__clang_call_terminate")


def main(build: str) -> int:
    objects = [path for name in ("avx2", "avx512") for path in Path(build).rglob(f"{name}.cpp.o")]
    shared = []
    for path in objects:
        lines = subprocess.run(["nm", "-C", str(path)], check=True, capture_output=True, text=True).stdout.splitlines()
        weak = [line.split(maxsplit=2)[-1] for line in lines if len(line.split()) > 2 and line.split()[1] in "WVu"]
        own = f"rankwood::{path.name.split('.')[0]}::"  # no other unit has functions of this namespace
        shared += [f"{path.name}: {name}" for name in weak if not name.startswith((*HARMLESS, own))]
    print(*shared, sep="\n", end="\n" if shared else "")
    print(f"{len(objects)} objects, {len(shared)} shared functions")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
