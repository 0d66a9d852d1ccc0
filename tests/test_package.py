"""The package as a whole: quick and quiet import, honest public names, docstring examples that run."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

import rankwood
from rankwood import _native
from rankwood import system as isa
from rankwood.system import resolve_threads

HEAVY = {
    *("scipy", "sklearn", "pyarrow", "pandas", "polars", "matplotlib", "plotly", "joblib", "lightgbm", "optuna"),
    *("rich", "typer", "pooch", "requests", "safetensors", "filelock", "tomli"),
}


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "RANKWOOD_ISA"} | environment
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)


def test_import_is_light_quiet_and_starts_no_thread():
    code = "import sys, threading, rankwood; print(threading.active_count(), *sys.modules)"
    result = run_python(code)
    n_threads, *modules = result.stdout.split()
    assert result.stderr == ""
    assert n_threads == "1"
    assert not HEAVY & {name.split(".")[0] for name in modules}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads through /proc")
def test_using_kernels_leaves_no_thread_behind():
    code = (
        "import os, numpy as np, rankwood as rw; n = len(os.listdir('/proc/self/task'));"
        "d = rw.make_ranking(20, 10, 5, n_threads=2); rw.evaluate(d.X[:, 0], d, n_threads=2);"
        "print(len(os.listdir('/proc/self/task')) - n)"
    )
    assert run_python(code).stdout.strip() == "0"


def test_every_public_name_is_there():
    for name in rankwood.__all__:
        assert getattr(rankwood, name) is not None
    assert set(rankwood.__all__) <= set(dir(rankwood))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        rankwood.nonsense


def test_every_module_loads_without_the_extra_of_the_lab():
    code = (
        "import sys, importlib\n"
        "for name in ('filelock', 'matplotlib', 'optuna', 'pooch', 'requests', 'tomli'): sys.modules[name] = None\n"
        f"for name in {modules()!r}: importlib.import_module(name)"
    )
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def modules() -> list[str]:
    found = [module.name for module in pkgutil.walk_packages(rankwood.__path__, "rankwood.")]
    return sorted(name for name in found if name not in ("rankwood.__main__", "rankwood._native"))


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    assert module.__doc__, "every module says what it is"
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).failed == 0


def test_the_stub_lists_the_kernels():
    import ast
    from pathlib import Path

    stub = ast.parse(Path(rankwood.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
    listed = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    listed |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    actual = {name for name in vars(_native) if not name.startswith("__")}
    assert listed == actual


@pytest.mark.native
def test_the_forced_instruction_set_is_the_one_in_use():
    forced = os.environ.get("RANKWOOD_ISA")
    assert isa.active_isa() == (forced or isa.available_isas()[0])
    assert isa.available_isas()[-1] == "baseline"


@pytest.mark.parametrize("name", ["avx512", "avx2", "neon", "AVX2"])
def test_an_instruction_set_that_cannot_run_is_an_error(name):
    result = run_python("from rankwood.system import active_isa; print(active_isa())", RANKWOOD_ISA=name)
    if name in isa.available_isas():
        assert result.stdout.strip() == name
    else:
        assert f"RankwoodError: RANKWOOD_ISA={name}: " in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("n_threads", ["2", 2.0, True, [1], 0, -1])
def test_numbers_of_threads_that_are_none(n_threads):
    with pytest.raises(rankwood.RankwoodError, match="n_threads must be"):
        resolve_threads(n_threads)
