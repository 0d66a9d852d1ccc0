"""What librankwood shows: the functions of its header and nothing else, under a name that says its ABI."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys

import pytest
from calling import ROOT, Batch, compile_c, library_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks tools of Linux about libraries")


def declared() -> set[str]:
    text = (ROOT / "native" / "runtime" / "rankwood.h").read_text()
    return set(re.findall(r"^RW_API [^(]*?(rw_\w+)\(", text, re.MULTILINE))


def test_the_functions_of_the_header_are_exported_and_nothing_else(installed):
    shown = subprocess.check_output(
        ["nm", "-D", "--defined-only", str(library_folder(installed) / "librankwood.so")], text=True
    )
    assert {line.split()[2].split("@")[0] for line in shown.splitlines() if line.split()[1] != "A"} == declared()
    assert len(declared()) == 18


def test_the_name_says_the_abi_and_nothing_of_cxx_is_asked_for(installed):
    shown = subprocess.check_output(["readelf", "-d", str(library_folder(installed) / "librankwood.so")], text=True)
    assert "Library soname: [librankwood.so.1]" in shown
    needed = re.findall(r"Shared library: \[(.*?)\]", shown)
    assert not [name for name in needed if "stdc++" in name or "gcc" in name]
    assert (library_folder(installed) / "librankwood.so").readlink().name == "librankwood.so.1"


def test_the_layout_of_a_batch(installed, tmp_path):
    program = compile_c(installed, ROOT / "tests" / "runtime" / "layout.c", tmp_path / "layout")
    shown = dict(line.split() for line in subprocess.check_output([str(program)], text=True).splitlines())
    assert shown.pop("RW_ABI_VERSION") == shown.pop("rw_abi_version") == "1"
    assert int(shown.pop("sizeof")) == ctypes.sizeof(Batch)
    assert {name: int(at) for name, at in shown.items()} == {
        name: getattr(Batch, name).offset for name, _ in Batch._fields_
    }
    assert [getattr(Batch, name).offset for name, _ in Batch._fields_] == [
        0, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80,
    ]  # fmt: skip


def test_pkg_config_and_cmake_find_it(installed, tmp_path):
    """Both link a program with the static library, too."""
    (pc,) = installed.rglob("rankwood.pc")
    source = ROOT / "tests" / "runtime" / "layout.c"
    if shutil.which("pkg-config"):
        for static in ([], ["--static"]):
            flags = subprocess.check_output(
                ["pkg-config", *static, "--cflags", "--libs", "rankwood"], text=True,
                env={"PKG_CONFIG_PATH": str(pc.parent), "PATH": "/usr/bin:/bin"},
            ).split()  # fmt: skip
            if static:
                flags[flags.index("-lrankwood")] = str(library_folder(installed) / "librankwood.a")
            subprocess.run(["cc", str(source), *flags, "-o", str(tmp_path / "by-pkg-config")], check=True)
            environment = {"LD_LIBRARY_PATH": str(library_folder(installed))}
            assert subprocess.run([str(tmp_path / "by-pkg-config")], env=environment, stdout=-3, check=True)
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(user C)\nfind_package(rankwood REQUIRED)\n"
        f"foreach(kind rankwood rankwood_static)\nadd_executable(with_${{kind}} {source})\n"
        "target_link_libraries(with_${kind} rankwood::${kind})\nendforeach()\n"
    )
    build = tmp_path / "project-build"
    configure = ["cmake", "-S", str(project), "-B", str(build), f"-DCMAKE_PREFIX_PATH={installed}"]
    for command in (configure, ["cmake", "--build", str(build)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("rankwood", "rankwood_static"):
        assert b"rw_abi_version 1" in subprocess.check_output([str(build / f"with_{kind}")])


def test_the_static_library_shows_the_functions_of_the_header_and_nothing_else(installed):
    archive = library_folder(installed) / "librankwood.a"
    shown = subprocess.check_output(["nm", "--defined-only", "-g", str(archive)], text=True)
    assert {line.split()[2] for line in shown.splitlines() if len(line.split()) == 3} == declared()
