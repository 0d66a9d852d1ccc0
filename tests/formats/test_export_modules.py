"""Models as Python modules and as C, run."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.scoring.c_library import find_compiler
from strategies.ensembles import big_ensemble
from strategies.exports import exported, models_and_rows

needs_compiler = pytest.mark.skipif(isinstance(find_compiler(), str), reason="NO C COMPILER")


def module(content):
    names: dict = {}
    exec(compile(content, "model.py", "exec"), names)
    return names


@settings(max_examples=30)
@given(models_and_rows())
def test_python_module_scores_alike(given_):
    model, X = given_
    names = module(exported(model, "python")[0])
    assert_array_equal([names["score"](row) for row in X], model.score(X))  # numpy's numbers, float32 included
    assert_array_equal(np.array([names["leaves"](row) for row in X.tolist()]).reshape(len(X), -1), model.leaves(X))


@settings(max_examples=30)
@given(models_and_rows())
def test_numpy_module_scores_alike(given_):
    model, X = given_
    names = module(exported(model, "numpy")[0])
    assert_array_equal(names["score"](X), model.score(X))
    assert_array_equal(names["leaves"](X), model.leaves(X))


def test_python_module_needs_nothing(tmp_path):
    model = big_ensemble(1, n_trees=3, n_leaves=8).replace(feature_names=["a'", 'b"', "ü", "\\", "\n", "f", "g", "$x"])
    rw.save_as(model, tmp_path / "ranker.py", "python")
    program = "import ranker; print(repr(ranker.score([0.5] * 8)), ranker.FEATURE_NAMES == ['a\\'', 'b\"', 'ü', "
    program += "'\\\\', '\\n', 'f', 'g', '$x'])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(tmp_path)!r}); {program}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [repr(float(model.score([[0.5] * 8])[0])), "True"]


@pytest.mark.parametrize("name", ["python", "numpy"])
def test_modules_refuse_rows_of_another_width(name):
    names = module(exported(big_ensemble(1, n_trees=3, n_leaves=8), name)[0])
    with pytest.raises(ValueError, match="8"):
        names["score"]([0.0] * 7 if name == "python" else np.zeros((2, 7)))


@needs_compiler
def test_shared_library_and_source(tmp_path):
    model = big_ensemble(1, n_trees=20, n_leaves=16)
    rw.save_as(model, tmp_path / "ranker.so", name="mine")
    rw.save_as(model, tmp_path / "ranker2.c")
    assert "mine_score" in (tmp_path / "ranker.h").read_text()
    assert '#include "ranker2.h"' in (tmp_path / "ranker2.c").read_text()
    library = ctypes.CDLL(str(tmp_path / "ranker.so"))
    library.mine_score.restype = ctypes.c_double
    row = np.random.default_rng(0).normal(size=8).astype(np.float32)
    assert library.mine_score(row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))) == model.score(row[None])[0]


def test_header_of_others_is_not_replaced(tmp_path):
    (tmp_path / "ranker.h").write_text("mine")
    with pytest.raises(rw.RankwoodError, match="not by rankwood"):
        rw.save_as(big_ensemble(1, n_trees=2, n_leaves=4), tmp_path / "ranker.c")
