"""`rankwood compile`: source that compiles anywhere and scores as rankwood does, libraries, and refusals."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest

import rankwood as rw
from rankwood.scoring.c_library import find_compiler
from strategies.ensembles import big_ensemble, values_near

needs_compiler = pytest.mark.skipif(
    isinstance(find_compiler(), str), reason="NO C COMPILER: install one, or name it in CC, to test `rankwood compile`"
)
STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
MAIN = """
#include <stdio.h>
#include "ranker-2.h"
int main(void) {
  static float rows[200 * RANKER_2_N_FEATURES];
  double scores[200];
  size_t n = fread(rows, sizeof rows[0] * RANKER_2_N_FEATURES, 200, stdin);
  if (ranker_2_self_test() != 0) return 9;
  if (ranker_2_score_f32(rows, n, RANKER_2_N_FEATURES, 1, scores) != 0) return 8;
  for (size_t i = 0; i < n; ++i) printf("%a %a\\n", scores[i], ranker_2_score(rows + i * RANKER_2_N_FEATURES));
  return 0;
}
"""
AWKWARD_NAMES = ["BM25", "clicks */ int x;", "/* \\", "??/", "naïve\u202e", "tab\there", '"quoted"', "ends in \\"]


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    model = big_ensemble(1, n_trees=40, n_leaves=12)
    named = rw.Ensemble(
        **{name: getattr(model, name) for name in ("feature", "threshold", "left", "right", "missing_left",
                                                   "leaf_value", "node_offsets", "tree_weights", "n_features", "base")},
        feature_names=AWKWARD_NAMES,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("model") / "ranker.rw"
    named.save(path)
    return named, path


def rows_of(model):
    return np.random.default_rng(2).choice(values_near(model.threshold, np.dtype(np.float32)), (200, 8))


@needs_compiler
@pytest.mark.parametrize("compiler", ["cc", "gcc", "clang"])
def test_written_source_compiles_without_a_warning_and_scores_alike(rankwood, ranker, tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    model, path = ranker
    outcome = rankwood("compile", path, "-o", tmp_path / "ranker-2.c")
    assert (outcome.status, outcome.out) == (0, "")
    size = (tmp_path / "ranker-2.c").stat().st_size
    assert outcome.err == (
        f"wrote {tmp_path}/ranker-2.c ({size / 1024:.1f} KB) and {tmp_path}/ranker-2.h; "
        f"call: double score = ranker_2_score(row);\n"
    )
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run([compiler, *STRICT, "-O1", "main.c", "ranker-2.c", "-o", "main"], cwd=tmp_path, check=True)
    X = rows_of(model)
    shown = subprocess.run([tmp_path / "main"], input=X.tobytes(), capture_output=True, check=True).stdout.split()
    scores = np.array([float.fromhex(text.decode()) for text in shown]).reshape(-1, 2)
    np.testing.assert_array_equal(scores[:, 0], model.score(X, engine="reference", precision="single"))
    np.testing.assert_array_equal(scores[:, 1], model.score(X, engine="reference", precision="double"))
    text = (tmp_path / "ranker-2.c").read_text(encoding="utf-8")
    assert "x[0] is 'BM25'" in text
    assert model.fingerprint() in text


@needs_compiler
def test_the_header_is_fit_for_cpp(rankwood, ranker, tmp_path):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no c++ here")
    assert rankwood("compile", ranker[1], "-o", tmp_path / "m.c").status == 0
    (tmp_path / "main.cpp").write_text('#include "m.h"\nint main() { return m_self_test(); }\n')
    subprocess.run(["cc", "-std=c99", "-c", "m.c"], cwd=tmp_path, check=True)
    subprocess.run([compiler, "-Wall", "-Wextra", "main.cpp", "m.o", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@needs_compiler
@pytest.mark.parametrize("options", [(), ("--native",)])
def test_a_library_is_ready_to_load(rankwood, ranker, tmp_path, options):
    model, path = ranker
    outcome = rankwood("compile", path, "-o", tmp_path / "lib.so", "--name", "forest", *options)
    assert outcome.status == 0, outcome.err
    assert "forest_score(row)" in outcome.err
    assert sorted(os.listdir(tmp_path)) == ["lib.h", "lib.so"]
    library = ctypes.CDLL(str(tmp_path / "lib.so"))
    assert library.forest_self_test() == 0
    info = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "forest_info"))).decode()
    assert info.startswith(f"rankwood {rw.__version__}; model {model.fingerprint()}; ")
    assert ("-march=native" in info) == bool(options)
    library.forest_score.restype = ctypes.c_double
    X = rows_of(model)
    scores = [library.forest_score(row.ctypes.data_as(ctypes.c_void_p)) for row in X]
    np.testing.assert_array_equal(scores, model.score(X, engine="reference"))
    exported = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "lib.so"], capture_output=True, text=True)
    assert {line.split()[-1] for line in exported.stdout.splitlines() if " T " in line} <= {
        f"forest_{name}"
        for name in (
            "score",
            *(f"{function}_{kind}" for function in ("score", "score_alone", "leaves") for kind in ("f32", "f64")),
            "self_test",
        )
    } | {"_init", "_fini"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "model.txt"), "model.txt: end the name in .c for C source or in .so for a shared library"),
        (("-o", "model"), "model: end the name in .c"),
        (("-o", "no/such/folder/m.c"), "no/such/folder/m.c: there is no folder no/such/folder"),
        (("-o", "m.c", "--native"), "--native is about a library"),
        (("-o", "m.c", "--name", "a b"), "the name 'a b' cannot start a C function"),
        (("-o", 'a"b.c'), "C cannot include a file that is named 'a\"b.h': choose another name"),
    ],
)
def test_what_is_refused_leaves_nothing(rankwood, ranker, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    outcome = rankwood("compile", ranker[1], *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"rankwood: {message}")
    assert outcome.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_header_of_somebody_else_is_not_replaced(rankwood, ranker, tmp_path):
    (tmp_path / "m.h").write_text("int mine;\n")
    outcome = rankwood("compile", ranker[1], "-o", tmp_path / "m.c")
    assert outcome.status == 2
    assert "m.h is not by rankwood and would be replaced" in outcome.err
    assert (tmp_path / "m.h").read_text() == "int mine;\n"
    assert os.listdir(tmp_path) == ["m.h"]
    assert rankwood("compile", ranker[1], "-o", tmp_path / "other.c").status == 0
    assert rankwood("compile", ranker[1], "-o", tmp_path / "other.c").status == 0  # its own header


def test_a_library_needs_a_compiler_and_source_does_not(rankwood, ranker, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CC", raising=False)
    outcome = rankwood("compile", ranker[1], "-o", tmp_path / "m.so")
    assert outcome.status == 2
    assert "there is no C compiler" in outcome.err
    assert outcome.err.endswith("write C source, FILE.c, and compile it elsewhere\n")
    assert os.listdir(tmp_path) == []
    assert rankwood("compile", ranker[1], "-o", tmp_path / "m.c").status == 0
