"""Bindings in C++, Java, Go and Rust give the bits of Python, on rows that sit on thresholds or beside them.

Each binding has a program that compares scores in a folder of cases. A case is a folder of files, little-endian:

    model.rw, facts (a word and a value per line), names (of features, one per line)
    rows.TYPE, columns.TYPE                  the same rows, row by row and column by column; TYPE is f32 or f64
    offsets                                  of queries, int64
    PRECISION.TYPE                           scores through all trees, float64; PRECISION is double or single
    exit-PRECISION.TYPE, trees-PRECISION.TYPE scores with queries, float64, and trees that each row went through, int32

The program says how many comparisons it made: for each type and precision seven sizes of batches, columns, scores with
queries, and trees.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from calling import library_folder

import rankwood as rw
from jdks import jdks
from strategies.adversarial_rows import adversarial_rows
from strategies.ensembles import AWKWARD_THRESHOLDS, big_ensemble, grow

BINDINGS = Path(__file__).parents[2] / "bindings"
N_ROWS = 1033
SIZES = [0, 1, 2, 300, 0, 7, 500, 10, 213, 0]  # of queries
TYPES = {"f32": np.float32, "f64": np.float64}
COMPARISONS = 2 * 2 * (7 + 3)  # of a case

NAMES = ["Länge", "长度", "🌲 depth", "BM25 (title)", "ß", "x", "y\\z", '"quoted"']


def awkward() -> rw.Ensemble:
    """Thresholds that are infinite, denormal, zeros of both signs, beyond float32 or between two of them."""
    rng = np.random.default_rng(1)
    left, right = grow("random", 6)
    trees = [
        rw.Tree(
            rng.integers(0, 3, 6),
            rng.choice(AWKWARD_THRESHOLDS, 6),
            left,
            right,
            leaf_value=rng.normal(size=7) * 10.0 ** rng.integers(-300, 3),
            missing_left=rng.random(6) < 0.5,
        )
        for _ in range(40)
    ]
    return rw.Ensemble.from_trees(trees, n_features=3, base=-0.0)


def models() -> dict[str, rw.Ensemble]:
    named = big_ensemble(0, n_trees=60, n_leaves=20, n_features=len(NAMES))
    return {
        "named": named.replace(feature_names=NAMES),
        "leaf": rw.Ensemble.from_trees([2.5], n_features=2, base=0.1),
        "exit": named.replace(exit=rw.EarlyExit((16, 32, 48), (9.0, 6.0, 3.0), top=5)),
        "awkward": awkward(),
        "large": big_ensemble(2, n_trees=150, n_leaves=64, n_features=136),
    }


def write_case(folder: Path, model: rw.Ensemble) -> None:
    folder.mkdir()
    model.save(folder / "model.rw")
    names = "".join(f"{name}\n" for name in model.feature_names or ())
    (folder / "names").write_text(names, encoding="utf-8", newline="\n")
    facts = {
        "features": model.n_features,
        "trees": model.n_trees,
        "leaves": model.n_leaves,
        "fingerprint": model.fingerprint(),
        "exit": int(model.exit is not None),
        "longest": max(SIZES),
    }
    (folder / "facts").write_text("".join(f"{key} {value}\n" for key, value in facts.items()), newline="\n")
    assert sum(SIZES) == N_ROWS
    np.cumsum([0, *SIZES]).astype("<i8").tofile(folder / "offsets")
    for name, dtype in TYPES.items():
        X = adversarial_rows(model, N_ROWS, dtype=dtype)
        tiny = np.finfo(dtype).smallest_subnormal
        X[::100] = np.resize([np.nan, np.inf, -np.inf, tiny, -tiny, 0.0, -0.0], len(X[::100]))[:, None]
        little = X.astype(X.dtype.newbyteorder("<"))
        little.tofile(folder / f"rows.{name}")
        np.ascontiguousarray(little.T).tofile(folder / f"columns.{name}")
        for precision in ("double", "single"):
            model.score(X, precision=precision).astype("<f8").tofile(folder / f"{precision}.{name}")
            scores = model.score(X, group=SIZES, precision=precision)
            scores.astype("<f8").tofile(folder / f"exit-{precision}.{name}")
            trees = model.trees_evaluated(X, group=SIZES, precision=precision)
            trees.astype("<i4").tofile(folder / f"trees-{precision}.{name}")


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    for name, model in models().items():
        write_case(folder / name, model)
    return folder


def test_cases_are_worth_comparing(cases):
    """Scores differ between rows, precisions and with queries; every kind of special value is among the rows."""
    for name in models():
        rows, scores = np.fromfile(cases / name / "rows.f32", "<f4"), np.fromfile(cases / name / "double.f32", "<f8")
        assert np.isnan(rows).any()
        assert np.isposinf(rows).any()
        assert np.isneginf(rows).any()
        assert ((rows != 0) & (np.abs(rows) < np.finfo(np.float32).tiny)).any()
        assert len(np.unique(scores)) > 10 or name == "leaf"
    by_trees, with_queries = (np.fromfile(cases / "exit" / f"{part}.f32", "<f8") for part in ("double", "exit-double"))
    assert 0.1 < (by_trees != with_queries).mean() < 0.95
    assert (np.fromfile(cases / "named" / "single.f32", "<f8") != by_trees).any()


@pytest.fixture(scope="module")
def candidates(cases) -> tuple[Path, str, list[str]]:
    """A model, the candidates of a query as text, and their ids in the order of Python's scores."""
    model = rw.load_model(cases / "named" / "model.rw")
    X = np.random.default_rng(5).normal(size=(100, model.n_features)).astype(np.float32)
    X[np.random.default_rng(6).random(X.shape) < 0.1] = np.nan
    lines = [
        f"d{row} " + " ".join("NaN" if np.isnan(value) else repr(float(value)) for value in values)
        for row, values in enumerate(X)
    ]
    return (
        cases / "named" / "model.rw",
        "\n".join(lines) + "\n",
        [f"d{row}" for row in np.argsort(-model.score(X), kind="stable")],
    )


def check_rerank(output: str, order: list[str]) -> None:
    assert [line.split()[0] for line in output.splitlines()] == order


def run(*command: object, cwd: Path | None = None, stdin: str | None = None, **environment: object) -> str:
    """What a program prints; its failure is the test's."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        input=stdin,
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def needs(program: str, sentence: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(sentence)
    return found


def check_comparisons(output: str, times: int = 1) -> None:
    """A program that compares nothing would end well, too."""
    assert re.findall(r"(\d+) comparisons", output) == [str(times * COMPARISONS * len(models()))]


@pytest.fixture(scope="module")
def libraries(installed) -> Path:
    """The folder that librankwood is in."""
    return library_folder(installed)


@pytest.fixture(scope="module")
def flags(installed, libraries) -> list[str]:
    """What a C compiler is told to find it."""
    return [f"-I{installed / 'include'}", f"-L{libraries}", "-lrankwood"]


def test_cpp(cases, candidates, libraries, flags, tmp_path):
    compiler = needs("c++", "NO C++ COMPILER: the C++ binding was not tested")
    strict = [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for name in ("compare_bits", "rerank"):
        run(*strict, BINDINGS / "cpp" / f"{name}.cpp", *flags, "-pthread", "-o", tmp_path / name)
    check_comparisons(run(tmp_path / "compare_bits", cases, LD_LIBRARY_PATH=libraries))
    model, text, order = candidates
    check_rerank(run(tmp_path / "rerank", model, stdin=text, LD_LIBRARY_PATH=libraries), order)


def test_rust(cases, candidates, libraries, tmp_path):
    cargo = needs("cargo", "NO CARGO: the Rust binding was not tested")
    crate = shutil.copytree(BINDINGS / "rust", tmp_path / "rust", ignore=shutil.ignore_patterns("target"))
    environment = {"RANKWOOD_LIB_DIR": libraries, "LD_LIBRARY_PATH": libraries, "CARGO_NET_OFFLINE": "true"}
    output = run(cargo, "test", "--", "--nocapture", cwd=crate, RANKWOOD_CASES=cases, **environment)
    check_comparisons(output)
    if shutil.which("cargo-clippy"):
        run(cargo, "clippy", "--all-targets", "--", "-D", "warnings", cwd=crate, **environment)
    if shutil.which("cargo-fmt"):
        run(cargo, "fmt", "--check", cwd=crate)
    model, text, order = candidates
    output = run(cargo, "run", "-q", "--example", "rerank", model, cwd=crate, stdin=text, **environment)
    check_rerank(output, order)


def test_go(cases, candidates, libraries, flags, tmp_path):
    go = needs("go", "NO GO: the Go binding was not tested")
    version = re.search(r"go1\.(\d+)", run(go, "version"))
    if version is None or int(version[1]) < 24:
        pytest.skip("GO TOO OLD: the Go binding needs 1.24 or later and was not tested")
    module = shutil.copytree(BINDINGS / "go", tmp_path / "go")
    environment = {
        "CGO_CFLAGS": flags[0],
        "CGO_LDFLAGS": flags[1],
        "LD_LIBRARY_PATH": libraries,
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
    }
    check_comparisons(run(go, "test", "-count=1", "-v", ".", cwd=module, RANKWOOD_CASES=cases, **environment))
    run(go, "vet", "./...", cwd=module, **environment)
    gofmt = Path(go).resolve().with_name("gofmt")
    assert not gofmt.exists() or run(gofmt, "-l", ".", cwd=module) == ""
    model, text, order = candidates
    check_rerank(run(go, "run", "./rerank", model, cwd=module, stdin=text, **environment), order)


def test_model_of_the_go_example():
    """The file in the repository is the model of the example in Ensemble's documentation."""
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, 20.0)], base=100.0)
    assert rw.load_model(BINDINGS / "go" / "testdata" / "two_trees.rw") == model


def test_versions_are_those_of_the_package():
    crate = (BINDINGS / "rust" / "Cargo.toml").read_text()
    project = (BINDINGS / "java" / "pom.xml").read_text()
    assert re.findall(r'^version = "(.*)"$', crate, re.M) == [rw.__version__]
    assert re.findall(r"^  <version>(.*)</version>$", project, re.M) == [rw.__version__]


def test_java(cases, candidates, libraries, flags, tmp_path):
    homes = jdks()
    if not homes:
        pytest.skip("NO JDK: the Java binding needs 17 or later and was not tested")
    newest = homes[max(homes)]
    run("sh", BINDINGS / "java" / "build", tmp_path, JAVA_HOME=newest, RANKWOOD_FLAGS=" ".join(flags))
    shutil.copy(libraries / "librankwood.so", tmp_path)
    where = os.pathsep.join(map(str, [tmp_path / "rankwood.jar", tmp_path / "programs"]))
    programs = [BINDINGS / "java/src/test/java/org/rankwood/CompareBits.java", BINDINGS / "java/examples/Rerank.java"]
    run(newest / "bin/javac", "--release", "17", "-cp", where, "-d", tmp_path / "programs", *programs)
    model, text, order = candidates
    for version, home in homes.items():
        for binding in ["jni", "ffm"] if version >= 22 else ["jni"]:
            java = [home / "bin/java", f"-Drankwood.library.path={tmp_path}", f"-Drankwood.binding={binding}"]
            java += ["-Xcheck:jni"] * (binding == "jni")
            java += ["--enable-native-access=ALL-UNNAMED"] * (version >= 22)
            java += ["-cp", where]
            output = run(*java, "org.rankwood.CompareBits", cases)
            check_comparisons(output, times=4)  # ways to hand rows over
            assert f"by {binding} on Java {version}," in output
            assert "WARNING" not in output  # of -Xcheck:jni
            check_rerank(run(*java, "Rerank", model, stdin=text), order)
    if max(homes) < 22:
        pytest.skip("NO JDK 22: JNI was tested, java.lang.foreign was not")
