"""A table of kernels runs only where the CPU has everything that its compiler flags turn on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rankwood import _native

ROOT = Path(__file__).resolve().parents[1]

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        "avx2" not in _native.available_isas(), reason="this CPU, or this build, has the baseline alone"
    ),
]

# Compilers announce these, but no CPU tells of them apart: they belong to others, or say what is fast.
NO_FEATURES = {"crc32", "evex256", "evex512", "avx10_1"}
IN_CPUINFO = {"bmi": "bmi1", "lzcnt": "abm", "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}


def flags_of(isa: str) -> list[str]:
    """The flags in native/CMakeLists.txt that turn on features for one table, as it is compiled for use."""
    text = (ROOT / "native" / "CMakeLists.txt").read_text()
    (options,) = re.findall(rf"set\(RANKWOOD_{isa.upper()}_FLAGS (-m[^)]*)\)", text)
    return options.split()


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_what_flags_turn_on_is_asked_of_the_cpu(isa):
    named = {flag.removeprefix("-m") for flag in flags_of(isa)}
    assert len(named) >= 6
    assert named <= set(_native.needed_features(isa))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++, to ask what its flags turn on")
@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_what_flags_bring_with_them_is_asked_of_the_cpu(isa):
    def macros(*flags: str) -> set[str]:
        command = ["g++", "-dM", "-E", "-x", "c++", *flags, "-"]
        return set(re.findall(r"#define (\w+) 1\b", subprocess.check_output(command, text=True, input="")))

    turned_on = {name.strip("_").lower().replace("sse4_", "sse4.") for name in macros(*flags_of(isa)) - macros()}
    features = {name for name in turned_on if not name.startswith("fp_fast")} - NO_FEATURES
    assert {"avx", "lzcnt"} <= features <= set(_native.needed_features(isa))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="compares with what Linux knows of the CPU")
@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_the_cpu_is_asked_rightly(isa):
    (flags,) = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    has_all = all(IN_CPUINFO.get(name, name) in flags.split() for name in _native.needed_features(isa))
    assert (isa in _native.available_isas()) == has_all


def test_the_baseline_asks_for_nothing():
    assert _native.needed_features("baseline") == []
