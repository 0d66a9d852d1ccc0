"""What the figures depend on: processor, instruction set, versions."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

FLAGS = ("sse4_2", "avx", "avx2", "fma", "bmi2", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vbmi",
         "avx512_vbmi2", "avx512_vpopcntdq", "avx512_bitalg", "gfni", "asimd", "sve")  # fmt: skip


def cpu_facts() -> dict[str, str]:
    """What the system tells of the first processor."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {"model name": platform.processor() or platform.machine()}
    first = path.read_text().split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def versions(packages: list[str]) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def describe_machine() -> dict[str, Any]:
    from rankwood.system import active_isa, available_isas

    facts = cpu_facts()
    present = (facts.get("flags") or facts.get("Features") or "").split()
    return {
        "cpu": facts.get("model name", platform.machine()),
        "cpu_numbers": " ".join(f"{key} {facts[key]}" for key in ("cpu family", "model", "stepping") if key in facts),
        "n_cpus": os.cpu_count(),
        "flags": [flag for flag in FLAGS if flag in present],
        "isa": active_isa(),
        "isas": available_isas(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
    }


def compiled_key(model: Path, *what: str) -> str:
    """Names a compiled model: other trees, another compiler or another processor are another one."""
    facts = cpu_facts()
    digest = hashlib.sha256(model.read_bytes())
    digest.update(repr((what, facts.get("model name"), facts.get("flags"))).encode())
    return digest.hexdigest()[:16]
