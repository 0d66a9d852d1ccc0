"""librankwood through its C interface: the bits of Ensemble.score, whatever the model, the rows and their layout."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import pytest
from calling import ARGUMENT, FILE, OK, WORKSPACE, Batch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.model.file import model_bytes
from strategies.adversarial_rows import adversarial_rows
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

FORMATS = Path(__file__).resolve().parents[1] / "formats" / "data"
FILES = sorted(path for path in FORMATS.iterdir() if not path.name.endswith(".scores.json"))
TYPES = (np.float32, np.float64)
EXIT = big_ensemble(3, n_trees=70, n_leaves=16, n_features=5).replace(
    exit=rw.EarlyExit((16, 32, 48), (0.5, math.inf, 0.1), top=7)
)
same_library = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


def layouts(X):
    """The same rows as they may lie in memory."""
    n, width = X.shape
    wide = np.full((2 * n + 3, 3 * width + 1), np.nan, X.dtype)
    wide[1 : 2 * n + 1 : 2, 1::3] = X
    backwards = np.ascontiguousarray(X[::-1, ::-1])
    yield np.ascontiguousarray(X)
    yield np.asfortranarray(X)
    yield wide[1 : 2 * n + 1 : 2, 1::3]
    yield backwards[::-1, ::-1]


def assert_same_scores(library, model, X):
    loaded = library.model(model_bytes(model))
    assert loaded.fact("fingerprint").decode() == model.fingerprint()
    for precision in ("double", "single"):
        expected = model.score(X, precision=precision)
        for rows in layouts(X):
            status, scores, trees = loaded.score(rows, single=precision == "single")
            assert status == OK
            assert_array_equal(bits(scores), bits(expected))
            assert (trees == model.n_trees).all()
    assert_array_equal(bits(loaded.score_rows(np.ascontiguousarray(X))), bits(model.score(X)))


@given(data=st.data())
@settings(same_library, max_examples=60)
def test_scores_of_any_model(library, data):
    model = data.draw(ensembles(min_trees=0, max_trees=40))
    assert_same_scores(library, model, data.draw(rows_near_thresholds(model)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_scores_of_the_models_of_other_tools(library, path):
    if path.suffix == ".cbm":
        pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    model = rw.load_model(path)
    for dtype in TYPES:
        assert_same_scores(library, model, adversarial_rows(model, 300, dtype=dtype))


MODELS = {
    "small": big_ensemble(1, n_trees=100, n_leaves=8, n_features=20),
    "usual": big_ensemble(2, n_trees=33, n_leaves=64, n_features=20),
    "many leaves": big_ensemble(4, n_trees=3, n_leaves=3000, n_features=4),
    "too many for bitslice": big_ensemble(5, n_trees=2, n_leaves=9000, n_features=4, decimals=6),
    "one leaf": rw.Ensemble.from_trees([2.0, -1.0], n_features=3),
    "no tree": rw.Ensemble.from_trees([], n_features=3, base=-0.5),
    "no feature": rw.Ensemble.from_trees([2.0], n_features=0),
    "too large for float32": big_ensemble(6, n_trees=20, n_leaves=8).reweigh([1e38] * 20),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_batch_size(library, name, dtype):
    model = MODELS[name]
    loaded = library.model(model_bytes(model))
    X = adversarial_rows(model, 300, dtype=dtype)
    expected = {single: model.score(X, precision="single" if single else "double") for single in (False, True)}
    for n in range(301):
        for single in (False, True):
            status, scores, _ = loaded.score(X[300 - n :], single=single)
            assert status == OK
            assert_array_equal(bits(scores), bits(expected[single][300 - n :]), err_msg=f"{n} rows")


# Early exit


@given(data=st.data())
@settings(same_library, max_examples=60)
def test_early_exit(library, data):
    few = data.draw(ensembles(max_trees=4, max_leaves=6))
    n_trees = data.draw(st.integers(17, 70))
    model = few.select([]).concat(*[few.select([i % few.n_trees]).replace(base=0.0) for i in range(n_trees)])
    places = [at for at in range(16, n_trees, 16) if data.draw(st.booleans())]
    margins = [data.draw(st.sampled_from([0.0, math.inf, 1e-3, 1.0, 5.0])) for _ in places]
    model = model.replace(exit=rw.EarlyExit(places, margins, top=data.draw(st.integers(1, 9))))
    X = data.draw(rows_near_thresholds(model))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(X)), max_size=5)))
    assert_early_exit(library, model, X, np.array([0, *cuts, len(X)]))


def assert_early_exit(library, model, X, offsets):
    loaded = library.model(model_bytes(model))
    group, largest = np.diff(offsets), int(np.diff(offsets).max(initial=0))
    assert loaded.fact("has_early_exit") == (not model.exit.never)
    group = group[group > 0]  # Python has no queries without documents
    for precision in ("double", "single"):
        expected = model.score(X, group=group, precision=precision)
        stopped = model.trees_evaluated(X, group=group, precision=precision)
        for room in (largest, largest + 5):
            found = loaded.score(X, offsets=offsets, single=precision == "single", max_query_rows=room)
            assert found[0] == OK
            assert_array_equal(bits(found[1]), bits(expected))
            assert_array_equal(found[2], stopped)


@pytest.mark.parametrize("sizes", [[1], [300], [8] * 30, [0, 100, 0, 3, 0], [2000, 1, 700], [600, 600, 5]])
def test_early_exit_of_queries_of_all_sizes(library, sizes):
    rng = np.random.default_rng(0)
    for dtype in TYPES:
        X = rng.normal(size=(sum(sizes), EXIT.n_features)).astype(dtype)
        assert_early_exit(library, EXIT, X, np.concatenate([[0], np.cumsum(sizes)]))


def test_without_queries_all_go_through_all_trees(library):
    loaded = library.model(model_bytes(EXIT))
    X = np.random.default_rng(0).normal(size=(50, EXIT.n_features))
    status, scores, trees = loaded.score(X)
    assert status == OK
    assert_array_equal(bits(scores), bits(EXIT.score(X)))
    assert (trees == EXIT.n_trees).all()


def test_queries_of_a_model_without_exit(library):
    plain = EXIT.replace(exit=None)
    loaded = library.model(model_bytes(plain))
    X = np.random.default_rng(0).normal(size=(50, EXIT.n_features))
    status, scores, trees = loaded.score(X, offsets=np.array([0, 20, 50]))
    assert status == OK
    assert_array_equal(bits(scores), bits(plain.score(X)))
    assert (trees == plain.n_trees).all()


# What a model tells


def test_facts_and_names(library):
    names = ["size", "näme \U0001f600", "half \ud83d", "a\tb"]
    model = MODELS["many leaves"].replace(feature_names=names)
    loaded = library.model(model_bytes(model))
    assert [loaded.fact(name) for name in ("n_features", "n_trees", "n_leaves")] == [4, 3, 9000]
    told = [loaded.fact("feature_name", i).decode() for i in range(4)]
    assert told == ["size", "näme \U0001f600", "half \ufffd\ufffd\ufffd", "a\tb"]
    assert loaded.fact("feature_name", 4) is None
    assert library.model(model_bytes(MODELS["usual"])).fact("feature_name", 0) is None
    assert library.c.rw_version().decode() == rw.__version__
    assert library.c.rw_instruction_set().decode() in rw.system.available_isas()


@given(model=ensembles(min_trees=0), base=st.floats(-1e300, 1e300), margin=st.floats(0, 1e308))
@settings(same_library, max_examples=100)
def test_fingerprints(library, model, base, margin):
    sixteen = model.concat(big_ensemble(0, n_trees=17, n_leaves=2, n_features=1)).replace(base=base)
    exits = sixteen.replace(exit=rw.EarlyExit((16,), (margin,)))
    for one in (model, sixteen, exits, model.replace(base=-0.0), model.replace(base=5e-324)):
        assert library.model(model_bytes(one)).fact("fingerprint").decode() == one.fingerprint()


# What is refused


def test_files(library, tmp_path):
    def load(path):
        handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(300)
        name = None if path is None else str(path).encode()
        status = library.c.rw_load(name, ctypes.byref(handle), message, ctypes.c_size_t(300))
        assert (status == OK) == bool(handle)
        library.c.rw_free(handle)
        return status, message.value.decode()

    path = tmp_path / "model.rw"
    for odd in (path, tmp_path, Path("/dev/null")):
        with pytest.raises(rw.ModelError) as caught:
            rw.Ensemble.load(odd)
        assert load(odd) == (FILE, str(caught.value))
    EXIT.save(path)
    assert load(path) == (OK, "")
    assert load(None)[0] == ARGUMENT
    assert library.c.rw_load(str(path).encode(), None, None, ctypes.c_size_t(0)) == ARGUMENT


def test_messages_are_cut_between_characters(library):
    content = model_bytes(MODELS["one leaf"]).replace(b"missing_left", "äääääm".encode() + b"_")
    for size in (0, 1, 2, 50, 90, 91, 92, 93, 300):
        handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(b"x" * 300, 301)
        library.c.rw_load_memory(
            content, ctypes.c_size_t(len(content)), ctypes.byref(handle), message, ctypes.c_size_t(size)
        )
        told = message.raw[:size]
        assert message.raw[size:300] == b"x" * (300 - size)
        if size:
            told[: told.index(b"\0")].decode()


def test_wrong_arguments(library):
    loaded, other = library.model(model_bytes(EXIT)), library.model(model_bytes(EXIT))
    X = np.zeros((3, EXIT.n_features))
    offsets, scores = np.array([0, 1, 3]), np.zeros(3)

    def status(workspace=None, **changes):
        fields = {
            "size": ctypes.sizeof(Batch), "type": 1, "values": X.ctypes.data, "n_rows": 3, "n_features": X.shape[1],
            "row_stride": X.shape[1], "feature_stride": 1, "scores": scores.ctypes.data,
            "query_offsets": offsets.ctypes.data, "n_queries": 2,
        }  # fmt: skip
        batch = Batch(**fields | changes)
        room = loaded.workspace(2) if workspace is None else workspace
        return library.c.rw_score(loaded.handle, ctypes.byref(batch), room)

    assert status() == OK
    for changes in (
        {"size": 0}, {"size": 8}, {"size": ctypes.sizeof(Batch) + 8}, {"type": 2}, {"flags": 2}, {"reserved": 1},
        {"values": None}, {"n_features": 4}, {"n_rows": 2}, {"n_rows": 4}, {"scores": None}, {"n_queries": 1},
    ):  # fmt: skip
        assert status(**changes) == ARGUMENT, changes
    for wrong in ([1, 2, 3], [0, 2, 1], [0, -1, 3], [0, 4, 3]):
        assert status(query_offsets=np.array(wrong).ctypes.data) == ARGUMENT
    assert status(workspace=other.workspace(2)) == WORKSPACE
    assert status(workspace=loaded.workspace(1)) == WORKSPACE
    assert status(workspace=loaded.workspace(0)) == WORKSPACE
    assert status(workspace=loaded.workspace(0), query_offsets=None) == OK
    assert status(workspace=ctypes.c_void_p()) == ARGUMENT
    assert status(n_rows=0, n_queries=0, values=None, scores=None) == OK
    assert library.c.rw_score(None, None, None) == ARGUMENT
    assert library.c.rw_score_f32(loaded.handle, None, ctypes.c_size_t(1), ctypes.c_size_t(5), None, None) == ARGUMENT
    assert library.c.rw_workspace_new(loaded.handle, ctypes.c_size_t(2**40), ctypes.byref(ctypes.c_void_p())) != OK
    assert library.c.rw_workspace_new(None, ctypes.c_size_t(0), None) == ARGUMENT
    library.c.rw_free(None)
    library.c.rw_workspace_free(None)


def test_every_status_has_a_text(library):
    texts = [library.c.rw_status_text(status).decode() for status in range(8)]
    assert len(set(texts)) == 8
    assert texts[-1] == "there is no such status"
