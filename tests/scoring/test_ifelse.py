"""Engine ifelse: bits of the reference for every model and row, a cache that is never wrong, errors of one sentence."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.scoring.c_library import (
    NAME,
    Compiler,
    LibraryCache,
    _name_of,
    cache_folder,
    cache_key,
    find_compiler,
)
from rankwood.scoring.c_source import MAX_NESTING, MAX_NODES, CSource, Splits, tree_functions
from rankwood.scoring.engines import ENGINES, IFELSE, IFELSE_ALONE, ifelse_kernel
from rankwood.scoring.timing import Budget, bench, time_models
from strategies.ensembles import big_ensemble, ensembles, grow, renumber, rows_near_thresholds, values_near

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        isinstance(find_compiler(), str), reason="NO C COMPILER: install one, or name it in CC, to test engine ifelse"
    ),
]
QUICK = dataclasses.replace(IFELSE, make_kernel=partial(ifelse_kernel, optimise="-O0"))
QUICK_ALONE = dataclasses.replace(IFELSE_ALONE, make_kernel=partial(ifelse_kernel, optimise="-O0", alone=True))
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals and fork")


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache_for_tests(shared_cache, monkeypatch):
    monkeypatch.setenv("RANKWOOD_CACHE", str(shared_cache))


@pytest.fixture
def empty_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("RANKWOOD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ifelse"


def small_model(value: float = 1.0) -> rw.Ensemble:
    return rw.Ensemble.from_trees([(0, 0.5, value, (1, 2.0, 20.0, 300.0)), (1, 0.0, 4.0, 5.0, True)], base=0.1)


def assert_like_reference(prepared, model, X, n_threads=1):
    assert_array_equal(prepared.leaves(X, n_threads=n_threads), model.leaves(X, engine="reference"))
    for precision in ("double", "single"):
        expected = model.score(X, engine="reference", precision=precision)
        scores = prepared.score(X, precision=precision, n_threads=n_threads)
        assert_array_equal(scores.view(np.int64), expected.view(np.int64))


# Exactness


@settings(max_examples=15)
@given(data=st.data())
def test_leaves_and_scores_are_the_references_bit_for_bit(shared_cache, data):
    model = data.draw(ensembles(max_trees=20))
    for dtype in (np.float32, np.float64):
        rows = data.draw(rows_near_thresholds(model, dtype=dtype))
        for engine in (QUICK, QUICK_ALONE):
            assert_like_reference(engine.prepare(model), model, rows)


@settings(max_examples=3)
@given(data=st.data())
def test_many_models_as_one(shared_cache, data):
    """More trees per compilation than there are in a group."""
    model = data.draw(ensembles(max_leaves=30))
    while model.n_trees <= 100:  # repeated, not drawn: hypothesis draws a few kilobytes at most
        model = model.concat(model.reweigh(0.5 * model.tree_weights))
    prepared = QUICK.prepare(model)
    for dtype in (np.float32, np.float64):
        assert_like_reference(prepared, model, data.draw(rows_near_thresholds(model, dtype=dtype, max_rows=600)))


def test_trees_of_every_size_and_depth():
    rng = np.random.default_rng(4)
    shapes = [("chain", 500), ("full", 255), ("random", 4999), ("random", 1), ("leaf", 0), ("full", 64)]
    shapes += [("left", 500), ("right", 500)] + [("random", 40)] * 10
    trees = []
    for shape, n_nodes in shapes:
        if shape in ("left", "right"):
            inner, leaf = np.r_[1:n_nodes, ~n_nodes], ~np.arange(n_nodes)
            left, right = (inner, leaf) if shape == "left" else (leaf, inner)
        else:
            left, right = renumber(*grow(shape, n_nodes), rng)
        thresholds = rng.normal(size=n_nodes).astype(np.float32)  # floats suffice
        if shape in ("left", "right"):  # so that many rows come far
            thresholds = np.sort(thresholds)[::-1] if shape == "left" else np.sort(thresholds)
        trees.append(rw.Tree(rng.integers(0, 3, n_nodes), thresholds, left, right, rng.normal(size=n_nodes + 1),
                             rng.random(n_nodes) < 0.5))  # fmt: skip
    model = rw.Ensemble.from_trees(trees, n_features=9, base=0.25)
    assert model.topology().max_depth >= 500
    assert model.topology().max_leaves == 5000
    assert CSource(model, "m").real == "float"
    assert len(CSource(model, "m").units()) > 2
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        near = values_near(model.threshold, dtype)
        for engine in (IFELSE, IFELSE_ALONE):
            assert_like_reference(engine.prepare(model), model, rng.choice(near, (3000, 9)), n_threads=2)


def test_one_document_after_the_other_is_for_the_stopwatch_alone():
    model = big_ensemble(1, n_trees=40, n_leaves=12)
    X = np.random.default_rng(1).normal(size=(500, model.n_features)).astype(np.float32)
    assert IFELSE_ALONE.name not in ENGINES
    with pytest.raises(rw.RankwoodError, match="there is no engine 'ifelse-alone'"):
        model.score(X, engine=IFELSE_ALONE.name)
    found = bench(model, X, [IFELSE_ALONE, "ifelse"], [100], repeats=6, cold=False)
    assert found.agree
    assert [times.engine for times in found.engines] == ["ifelse-alone", "ifelse"]
    (timed,) = time_models([(IFELSE_ALONE.prepare(model), X)], batch=100, budget=Budget(6, 0.0))
    assert (timed.engine, timed.batch) == ("ifelse-alone", 100)


def test_no_trees_and_no_features():
    for n_features in (0, 3):
        model = rw.Ensemble.from_trees([], n_features=n_features, base=-0.5)
        assert_like_reference(QUICK.prepare(model), model, np.ones((5, n_features)))
    model = rw.Ensemble.from_trees([2.0, 3.0], n_features=0)
    assert_like_reference(QUICK.prepare(model), model, np.ones((5, 0), dtype=np.float32))


@pytest.mark.parametrize(
    ("thresholds", "real"),
    [
        ([0.1, 0.2, 1e300, -1e300, 5e-324, np.inf, -np.inf], "double"),  # -1e300 and -inf are one float
        ([0.1, 0.2, 1e300, 5e-324, -5e-324, np.inf, -np.inf, 16777217.0, 16777218.0], "float"),
        ([16777217.0, 16777216.5], "double"),
        ([0.0, -0.0], "float"),
        ([1.0, np.nextafter(1.0, 2.0)], "double"),
    ],
)
def test_doubles_between_floats(thresholds, real):
    """Trees compare floats when no two thresholds of a feature round to one float."""
    model = rw.Ensemble.from_trees([(0, t, 1.0, 2.0, bool(i % 2)) for i, t in enumerate(thresholds)], n_features=1)
    assert CSource(model, "m").real == real
    prepared = QUICK.prepare(model)
    doubles = values_near(model.threshold, np.dtype(np.float64))
    floats = values_near(model.threshold, np.dtype(np.float32))
    with np.errstate(over="ignore"):
        more = np.concatenate([doubles, floats.astype(np.float64), doubles * (1 + 1e-9), doubles * 0.5 + 1e-300])
    assert_like_reference(prepared, model, more[:, None])
    assert_like_reference(prepared, model, floats[:, None])


def test_values_that_float_cannot_hold_are_summed_in_double():
    model = rw.Ensemble.from_trees([(0, 0.0, 1e300, -1e-300), (0, 1.0, 3e38, 2e38)])
    X = np.array([[-1.0], [0.5], [2.0]])
    prepared = QUICK.prepare(model)
    assert_like_reference(prepared, model, X)
    assert_array_equal(prepared.score(X, precision="single"), prepared.score(X, precision="double"))


def test_any_memory_order_number_of_rows_and_threads():
    model = big_ensemble(3, n_trees=37, n_leaves=20)
    prepared = QUICK.prepare(model)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 8)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    wide = np.repeat(X[:300], 3, axis=1)
    for some in (X[:0], X[:1], X[:17], X, np.asfortranarray(X), X[::-2], wide[:, ::3], wide[:, ::-3],
                 np.broadcast_to(X[7], (40, 8))):  # fmt: skip
        for dtype in (np.float32, np.float64):
            for n_threads in (1, 3):
                given_ = some if dtype == np.float64 else some.astype(dtype, order="A")
                assert_like_reference(prepared, model, given_, n_threads)


def test_many_threads_may_use_one_prepared_model():
    model = big_ensemble(5, n_trees=20, n_leaves=16)
    prepared = QUICK.prepare(model)
    X = np.random.default_rng(1).normal(size=(800, 8)).astype(np.float32)
    expected = model.score(X, engine="reference", precision="single")
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: prepared.score(X, precision="single", n_threads=2), range(40)):
            assert_array_equal(scores, expected)


@posix
def test_a_prepared_model_survives_a_fork():
    code = (
        "import os, numpy as np, rankwood as rw\n"
        "m = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])\n"
        "p = rw.get_engine('ifelse').prepare(m)\n"
        "X = np.arange(200.0).reshape(-1, 1) / 100\n"
        "before = p.score(X, n_threads=2)\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if (p.score(X, n_threads=2) == before).all() else 3)\n"
        "print(os.waitpid(child, 0)[1], before.sum())\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("0 349.0\n", "")


# Source


def test_functions_are_neither_deep_nor_long():
    n_nodes = 3000
    leaf, inner = [~i for i in range(n_nodes)], [*range(1, n_nodes), ~n_nodes]
    for left, right, n_functions in ((inner, leaf, n_nodes / MAX_NESTING), (leaf, inner, n_nodes / MAX_NODES)):
        lines = tree_functions(3, Splits(["x[0] <= 0.5f"] * n_nodes, left, right))
        functions = re.split(r"(?m)^static ", "\n".join(lines))[1:]
        assert max(len(line) - len(line.lstrip()) for line in lines) <= 2 * (MAX_NESTING + 2)
        assert max(text.count("x[0]") for text in functions) <= MAX_NODES
        assert sum(text.count("x[0]") for text in functions) == n_nodes
        assert n_functions - 1 <= len(functions) <= n_functions + 2


def test_the_source_is_the_same_every_time_and_names_its_model():
    source = CSource(small_model(), "m").whole("m.c", "m.h")
    assert source == CSource(small_model(), "m").whole("m.c", "m.h")
    assert small_model().fingerprint() in source
    assert f"Written by rankwood {rw.__version__}" in source
    assert "if (x[0] <= 0.5f) return 0;\n  return x[1] <= 2.0f ? 1 : 2;" in source
    assert "return !(x[1] > 0.0f) ? 0 : 1;" in source


def test_a_name_that_c_does_not_know():
    for name in ("2nd", "a-b", "", "_x"):
        with pytest.raises(rw.ModelError, match="cannot start a C function: use letters, digits and _"):
            CSource(small_model(), name)


def test_a_self_test_finds_a_wrong_value(tmp_path):
    """Every change of a threshold, leaf value or direction of missing values that the rows meet."""
    compiler = find_compiler()
    good = CSource(small_model(), "m").whole("m.c", "m.h")
    changes = [("0.5f)", "0.5000001f)"), ("x[1] <= 2.0f", "x[1] < 2.0f"), ("!(x[1] > 0.0f)", "x[1] <= 0.0f"),
               ("20.0, 300.0", "20.0, 300.5"), ("? 1 : 2", "? 2 : 1"), (" 4.0, 5.0", " 5.0, 5.0")]  # fmt: skip
    for number, (old, new) in enumerate([("", ""), *changes]):
        assert old in good
        folder = tmp_path / str(number)
        folder.mkdir()
        units = {"m.h": CSource(small_model(), "m").header(), "m.c": good.replace(old, new, 1)}
        library = ctypes.CDLL(str(compiler.build(units, ["-O0"], folder)))
        assert (library.m_self_test() == 0) == (number == 0), new


# Cache


def never(*_):
    raise AssertionError("compiled again")


def test_a_model_is_compiled_once(empty_cache, monkeypatch):
    assert not QUICK.prepare(small_model()).from_cache
    assert QUICK.prepare(small_model()).from_cache
    path = ifelse_kernel(small_model(), "-O0").path
    assert os.listdir(empty_cache) == [path.name]
    assert empty_cache.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as patch:
        patch.setattr(Compiler, "build", never)
        again = small_model().with_metadata(note="does not change a score")
        assert ifelse_kernel(again, "-O0").path == path
        for model, optimise in ((small_model(2.0), "-O0"), (small_model(), "-O1")):
            with pytest.raises(AssertionError, match="compiled again"):
                ifelse_kernel(model, optimise)
    other = ifelse_kernel(small_model(2.0), "-O0").path
    assert set(os.listdir(empty_cache)) == {path.name, other.name}


def test_the_key_tells_compilers_cpus_and_versions_apart(tmp_path, monkeypatch):
    model, compiler = small_model(), find_compiler()
    keys = [cache_key(model, compiler), cache_key(model, compiler, "-O0"), cache_key(small_model(3.0), compiler)]
    fake = tmp_path / "cc"
    for version in ("one", "two"):
        fake.write_text(f"#!/bin/sh\necho {version}\n")
        fake.chmod(0o755)
        keys.append(cache_key(model, Compiler((str(fake),))))
    keys.append(cache_key(model, Compiler((str(fake), "-m32"))))
    for name, value in (("cpu_identity", lambda: "another CPU"), ("__version__", "0")):
        with monkeypatch.context() as patch:
            patch.setattr(f"rankwood.scoring.c_library.{name}", value)
            keys.append(cache_key(model, compiler))
    assert len(set(keys)) == len(keys)
    assert cache_key(small_model(), find_compiler()) == keys[0]


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "another file"])
def test_a_damaged_library_is_made_again(empty_cache, damage):
    """In processes of their own: who has loaded a library, or loads a damaged one, may end when it changes."""
    code = (
        "import rankwood as rw; from rankwood.scoring.engines import ifelse_kernel\n"
        "model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 20.0, 300.0)), (1, 0.0, 4.0, 5.0, True)], base=0.1)\n"
        "print(ifelse_kernel(model, '-O0').path)"
    )
    run = partial(subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=False)
    path = Path(run().stdout.strip())
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "truncated": content[:middle],
            "changed": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "empty": b"",
            "another file": b"not a library\n" * 999,
        }[damage]
    )
    result = run()
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{path}\n", "")
    assert path.read_bytes() == content
    assert os.listdir(empty_cache) == [path.name]


def test_a_library_of_another_model_is_not_used(empty_cache):
    """Even when it is whole, and called what the right one would be called."""
    other = ifelse_kernel(small_model(2.0), "-O0").path
    key = cache_key(small_model(), find_compiler(), "-O0")
    wrong = empty_cache / _name_of(key, other.read_bytes())
    shutil.copy(other, wrong)
    foreign = b"\x7fELF: no library at all"
    (empty_cache / _name_of(key, foreign)).write_bytes(foreign)
    model = small_model()
    assert_like_reference(QUICK.prepare(model), model, np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert not wrong.exists()
    assert len(os.listdir(empty_cache)) == 2


def test_a_library_that_fails_its_test_is_not_kept(empty_cache, monkeypatch):
    units = CSource.units

    def broken(self):
        return {name: text.replace("20.0, 300.0", "20.0, 300.5") for name, text in units(self).items()}

    monkeypatch.setattr(CSource, "units", broken)
    with pytest.raises(rw.ModelError, match="does not score as it must: its self-test fails"):
        IFELSE.prepare(small_model())
    assert os.listdir(empty_cache) == []


def test_processes_may_compile_the_same_model_at_once(empty_cache):
    code = (
        "import rankwood as rw; model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])\n"
        "print(model.score([[0.0], [1.0]], engine='ifelse'))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)]
    assert {process.communicate()[0] for process in running} == {b"[1. 2.]\n"}
    assert len(os.listdir(empty_cache)) == 1


def test_what_was_not_used_for_long_is_removed(empty_cache):
    old = ifelse_kernel(small_model(), "-O0").path
    build = empty_cache / ".build-killed"
    build.mkdir()
    for path, days in ((old, 31), (build, 2)):
        os.utime(path, (time.time() - 86400 * days,) * 2)
    recent = ifelse_kernel(small_model(2.0), "-O0").path
    assert os.listdir(empty_cache) == [recent.name]


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("RANKWOOD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rankwood"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert cache_folder().is_relative_to(Path.home())
    monkeypatch.setenv("RANKWOOD_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


@posix
@pytest.mark.parametrize("mode", [0o777, 0o702, 0o770, 0o720, 0o2770])
def test_a_folder_where_others_may_write(empty_cache, mode):
    empty_cache.mkdir(parents=True)
    empty_cache.chmod(mode)
    with pytest.raises(rw.RankwoodError, match="where others may write: set RANKWOOD_CACHE to a folder that only you"):
        IFELSE.prepare(small_model())
    assert os.listdir(empty_cache) == []


@posix
def test_a_folder_that_cannot_be_used(empty_cache, monkeypatch):
    empty_cache.mkdir(parents=True)
    file = empty_cache / "file"
    file.write_text("")
    monkeypatch.setenv("RANKWOOD_CACHE", str(file))
    with pytest.raises(rw.RankwoodError, match=r"cannot be written \(Not a directory\): set RANKWOOD_CACHE to another"):
        IFELSE.prepare(small_model())


def open_to_the_group(path: Path) -> None:
    path.chmod(0o660)


def open_to_all(path: Path) -> None:
    path.chmod(0o606)


def another_owner(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)


def link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere.so"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@posix
@pytest.mark.parametrize("change", [open_to_the_group, open_to_all, another_owner, link, pipe])
def test_a_library_that_others_may_have_written_is_made_again(empty_cache, monkeypatch, change):
    """It is whole and of the right name, but somebody else could have put it there, or could change it meanwhile."""
    path = ifelse_kernel(small_model(), "-O0").path
    content = path.read_bytes()
    change(path)
    loaded = []
    with monkeypatch.context() as patch:
        patch.setattr(Compiler, "build", never)
        patch.setattr(ctypes, "CDLL", loaded.append)
        with pytest.raises(AssertionError, match="compiled again"):
            ifelse_kernel(small_model(), "-O0")
    assert loaded == []
    assert ifelse_kernel(small_model(), "-O0").path == path
    facts = path.lstat()
    assert (stat.S_ISREG(facts.st_mode), facts.st_mode & 0o022, facts.st_uid) == (True, 0, os.getuid())
    assert os.listdir(empty_cache) == [path.name]
    if change is link:
        assert (empty_cache.parent / "elsewhere.so").read_bytes() == content


def test_what_cannot_be_removed_is_passed_over(empty_cache):
    key = cache_key(small_model(), find_compiler(), "-O0")
    (empty_cache / f"{key}-folder.so").mkdir(parents=True)
    path = ifelse_kernel(small_model(), "-O0").path
    assert path.is_file()


@posix
def test_a_library_is_for_its_owner_whatever_the_umask(empty_cache, monkeypatch):
    before = os.umask(0o002)
    try:
        path = ifelse_kernel(small_model(), "-O0").path
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(Compiler, "build", never)
    assert ifelse_kernel(small_model(), "-O0").path == path


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a name for an open folder")
def test_what_was_checked_is_what_is_loaded(empty_cache):
    """Also when somebody puts another folder in the place of the cache in between: its parent may be open to others."""
    make = "import rankwood as rw; from rankwood.scoring.engines import ifelse_kernel; "
    make += "model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]); path = ifelse_kernel(model, '-O0').path; print(path)"
    swap = """
import ctypes, os
from pathlib import Path
load, folder = ctypes.CDLL, Path(os.environ["RANKWOOD_CACHE"]) / "ifelse"
def swapped(name):
    os.rename(folder, folder.with_name("checked"))
    folder.mkdir()
    for path in folder.with_name("checked").iterdir():
        (folder / path.name).write_bytes(b"of somebody else")
    return load(name)
ctypes.CDLL = swapped
"""
    assert python(make).returncode == 0
    outcome = python(swap + make)
    assert outcome.stderr == ""
    (library,) = empty_cache.iterdir()
    assert outcome.stdout == f"{library}\n"
    assert library.read_bytes() == b"of somebody else"  # was neither loaded nor replaced


@posix
def test_libraries_of_many_models_do_not_take_each_others_place(empty_cache):
    """Loaders know a library by its name, and may not look at the file again."""
    models = [small_model(float(value)) for value in range(5)]
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    for _ in range(2):
        for model in models:
            assert_like_reference(QUICK.prepare(model), model, X)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


# Compilers


def test_without_a_compiler_the_error_names_the_engines_that_need_none(monkeypatch, tmp_path):
    model = small_model()
    assert "ifelse" in rw.available_engines(model)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(rw.ModelError) as error:
        model.score([[0.0, 0.0]], engine="ifelse")
    message = str(error.value)
    assert message.startswith("engine 'ifelse' cannot score this model: there is no C compiler (cc, gcc, clang; ")
    assert "'reference'" in message
    assert message.endswith(("need none", "needs none"))
    assert "ifelse" not in rw.available_engines(model)
    assert "'ifelse'" not in message.partition(";")[2]


def test_the_variable_cc(monkeypatch):
    for text, named in (("no-such-compiler -O9", "no-such-compiler -O9"), ("'", '"\'"')):
        monkeypatch.setenv("CC", text)
        with pytest.raises(rw.ModelError, match=f"the variable CC names, .*{named}.*, is not there; 'reference'"):
            IFELSE.prepare(small_model())
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    monkeypatch.setenv("CC", f"'{compiler}' -DNOTHING=1")
    found = find_compiler()
    assert found == Compiler((compiler, "-DNOTHING=1"))
    assert str(found) == f"{Path(compiler).name} -DNOTHING=1"


@posix
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo 'model.c: In function' >&2; echo 'model.c:1: error: odd' >&2; exit 1",
            "cc failed: model.c:1: error: odd",
        ),
        ("exit 3", "cc failed: it does not say why"),
        ("kill -9 $$", "cc was ended by signal 9: is there too little memory?"),
        ("touch model.so model.c.o", "cc made cannot be loaded: "),
    ],
)
def test_a_compiler_that_fails(empty_cache, tmp_path, monkeypatch, script, message):
    fake = tmp_path / "cc"
    fake.write_text(f"#!/bin/sh\ncase $1 in --version) echo fake; exit;; esac\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    with pytest.raises(rw.ModelError) as error:
        IFELSE.prepare(small_model())
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "/proc/" not in str(error.value)
    assert os.listdir(empty_cache) == []


@posix
def test_ctrl_c_ends_the_compilers_and_leaves_nothing(empty_cache, tmp_path):
    fake = tmp_path / "cc"
    fake.write_text(
        "#!/bin/sh\ncase $1 in --version) echo fake; exit;; esac\n"
        f"sleep 60 &\necho $$ $! > {tmp_path}/pids.part; mv {tmp_path}/pids.part {tmp_path}/pids; wait\n"
    )
    fake.chmod(0o755)
    code = "import rankwood as rw; rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).score([[0.0]], engine='ifelse')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"CC": str(fake)}, stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if (tmp_path / "pids").exists():
            break
        time.sleep(0.05)
    assert len(os.listdir(empty_cache)) == 1
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    assert os.listdir(empty_cache) == []
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        assert has_ended(pid), "a compiler still runs"


def has_ended(pid: int) -> bool:
    for _ in range(1500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True  # ended; nobody has asked how
        time.sleep(0.02)
    return False


def test_models_too_large_to_compile_are_refused():
    engine = dataclasses.replace(IFELSE, limits=dataclasses.replace(IFELSE.limits, max_nodes=2))
    with pytest.raises(rw.ModelError, match="there are 3 inner nodes and engine 'ifelse' takes 2"):
        engine.prepare(small_model())
    assert LibraryCache("ifelse").find("nothing") == []
    assert NAME.isidentifier()
