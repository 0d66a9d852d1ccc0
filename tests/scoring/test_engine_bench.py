"""Timing engines: what is called and counted, and what is compared before."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

import rankwood as rw
from rankwood import DataError, ModelError, RankwoodError
from rankwood import system as machine
from rankwood.scoring import engines as registry
from rankwood.scoring import timing as bench_module
from rankwood.scoring.agreement import ReferenceResults
from rankwood.scoring.engines import ENGINES, Engine, Limits
from rankwood.scoring.timing import Evictor, bench
from strategies.ensembles import big_ensemble


@dataclass
class Spy:
    """An engine that is the reference, but for what a test changes; it remembers its calls."""

    wrong_leaf: tuple[int, int] | None = None  # call it wrong for this row, in this tree
    wrong_score_in: int | None = None  # batches of this size
    from_cache: bool = False
    n_bytes: int = 12345
    calls: list[np.ndarray] = field(default_factory=list)
    models: list[rw.Ensemble] = field(default_factory=list)

    def make_kernel(self, model):
        self.models.append(model)
        self.reference = ENGINES["reference"].make_kernel(model)
        return self

    def score(self, X, scores, single, n_threads):
        self.calls.append(X)
        self.reference.score(X, scores, single, n_threads)
        if len(X) == self.wrong_score_in:
            scores[-1] = np.nextafter(scores[-1], np.inf)

    def leaves(self, X, leaves, n_threads):
        self.reference.leaves(X, leaves, n_threads)
        if self.wrong_leaf is not None:
            leaves[self.wrong_leaf] ^= 1


@pytest.fixture
def enlist(monkeypatch):
    """Put a spy into the registry."""

    def add(name="spy", limits=None, find_obstacle=lambda: None, **changes):
        spy = Spy(**changes)
        engine = Engine(name, "for a test", limits or Limits(), spy.make_kernel, find_obstacle)
        monkeypatch.setitem(ENGINES, name, engine)
        return spy

    return add


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    monkeypatch.setattr(bench_module, "largest_cache", lambda: 1 << 16)


@pytest.fixture(scope="module")
def model():
    return big_ensemble(5, n_trees=6, n_leaves=8, n_features=4)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(250, 4)).astype(np.float32)


# ------------------------------------------------------------------------------------------------ what is timed


def test_calls_are_counted_and_made_on_different_documents(enlist, model, X):
    spy = enlist()
    found = bench(model, X, ["spy"], [1, 100, None], repeats=40)
    assert [cell.batch for cell in found.engines[0].cells] == [1, 100, 250]
    for cell in found.engines[0].cells:
        assert cell.warm.n_calls == cell.cold.n_calls == 40
        assert 0 < cell.warm.low <= cell.warm.us_per_doc <= cell.warm.high
    singles = [call for call in spy.calls if len(call) == 1]
    assert len({call.tobytes() for call in singles[-40:]}) == 40
    assert all(np.shares_memory(call, X) for call in singles)  # float32 rows are not copied


def test_caches_are_emptied_before_every_cold_call(enlist, model, X, monkeypatch):
    spy, order = enlist(), []
    monkeypatch.setattr(Evictor, "__call__", lambda self: order.append(len(spy.calls)))
    bench(model, X, ["spy"], [10], repeats=8)
    assert order == list(range(len(spy.calls) - 8, len(spy.calls)))


def test_cold_calls_can_be_left_out(enlist, model, X, monkeypatch):
    enlist()
    monkeypatch.setattr(Evictor, "__call__", None)
    (times,) = bench(model, X, ["spy"], [10], repeats=8, cold=False).engines
    assert times.cells[0].cold is None
    assert times.cells[0].warm.n_calls == 8
    assert not [name for name in times.cells[0].as_dict() if name.startswith("cold")]


def test_the_default_is_every_engine_that_can(enlist, model, X):
    enlist("narrow", limits=Limits(max_leaves=4))
    enlist("absent", find_obstacle=lambda: "there is no compiler")
    found = bench(model, X, batches=[50], repeats=6)
    assert [times.engine for times in found.engines] == rw.available_engines(model)
    obstacle = rw.get_engine("ifelse").find_obstacle()
    assert found.unavailable == {
        **({} if obstacle is None else {"ifelse": found.unavailable["ifelse"]}),  # no C compiler
        "narrow": "a tree has 8 leaves and engine 'narrow' takes 4",
        "absent": "there is no compiler",
    }
    assert found.agree
    assert found.n_compared == found.n_docs == 250
    assert set(found.fastest()) == {50}
    with pytest.raises(ModelError, match="engine 'absent' cannot score this model: there is no compiler"):
        bench(model, X, ["reference", "absent"], [50], repeats=6)
    with pytest.raises(RankwoodError, match="there is no engine 'warp'"):
        bench(model, X, ["warp"])


def test_auto_takes_what_it_would_take(enlist, model, X, monkeypatch):
    spy = enlist()

    def choose(model, n_rows):
        return "spy" if n_rows > 1 else "reference"

    monkeypatch.setattr(registry, "choose_engine", choose)
    monkeypatch.setattr(bench_module, "choose_engine", choose)
    found = bench(model, X, ["reference", "auto"], [1, 20], repeats=6)
    reference, auto = found.engines
    assert [cell.chosen for cell in auto.cells] == ["reference", "spy"]
    assert auto.n_bytes == reference.n_bytes + spy.n_bytes
    assert len(spy.calls) >= 12
    assert set(found.fastest().values()) == {"reference"}


def test_preparation_starts_afresh_and_compilation_once(enlist, model, X, monkeypatch):
    monkeypatch.setattr(bench_module, "_QUICK", np.inf)
    model.score(X)
    spy = enlist()
    times = bench(model, X, ["spy"], [10], repeats=6).engines[0]
    assert len(spy.models) == 5
    assert all(made is not model and made == model for made in spy.models)
    assert len({id(made.trees) for made in spy.models}) == 5
    assert (times.from_cache, times.n_bytes) == (False, 12345)
    compiled = enlist("compiled", limits=Limits(needs_compiler=True), from_cache=True)
    times = bench(model, X, ["compiled"], [10], repeats=6).engines[0]
    assert len(compiled.models) == 1
    assert times.from_cache


def test_sizes_of_batches(model, X):
    found = bench(model, X, ["reference"], repeats=6)
    assert [cell.batch for cell in found.engines[0].cells] == [1, 10, 100, 250]
    assert found.skipped == (1000,)
    assert found.engines[0].us_per_doc == found.engines[0].cells[-1].warm.us_per_doc
    with pytest.raises(DataError, match="the data has 250 documents: no batch is as small"):
        bench(model, X, ["reference"], [1000])
    for wrong in (0, -1, 1.5, "10", True):
        with pytest.raises(RankwoodError, match="a batch is at least 1 document"):
            bench(model, X, ["reference"], [wrong])


def test_wrong_arguments(model, X):
    with pytest.raises(RankwoodError, match="repeats must be at least 6"):
        bench(model, X, repeats=5)
    with pytest.raises(DataError, match="no rows"):
        bench(model, X[:0])
    with pytest.raises(DataError, match="X has 3 features but the model was built on 4"):
        bench(model, X[:, :3], ["reference"], [10], repeats=6)
    with pytest.raises(RankwoodError, match="precision must be"):
        bench(model, X, ["reference"], [10], repeats=6, precision="half")


def test_the_result_is_json(model, X):
    facts = bench(model, X, batches=[1, 10], repeats=6, n_threads=2, precision="single").as_dict()
    json.dumps(facts, allow_nan=False)
    assert (facts["agree"], facts["n_threads"], facts["precision"]) == (True, 2, "single")
    assert bench(model, X, ["reference"], [10], repeats=6).precision == "double"
    for times in facts["engines"]:
        assert times["us_per_doc"] == times["batches"][-1]["us_per_doc"]
        assert times["prepare_s"] > 0
        for cell in times["batches"]:
            assert cell["low"] <= cell["us_per_doc"] <= cell["high"]
            assert cell["cold_low"] <= cell["cold_us_per_doc"] <= cell["cold_high"]


def test_progress_counts_cells(model, X):
    seen = []
    bench(model, X, ["reference", "auto"], [1, 10], repeats=6, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


# ------------------------------------------------------------------------------------------------ agreement


def test_a_wrong_leaf_is_found_and_nothing_is_timed(enlist, model, X):
    spy = enlist(wrong_leaf=(17, 3))
    found = bench(model, X, batches=[1, None], repeats=6)
    right = int(model.leaves(X)[17, 3])
    assert [str(one) for one in found.disagreements] == [
        f"engine 'spy' reaches leaf {right ^ 1} of tree 3 for document 17 in a batch of 250, "
        f"where the reference has leaf {right}"
    ]
    assert not found.agree
    assert all(times.cells == () for times in found.engines)
    assert not spy.calls
    assert found.fastest() == {}
    facts = json.loads(json.dumps(found.as_dict()))
    assert facts["agree"] is False
    assert facts["disagreements"][0] | {"message": ""} == {
        "engine": "spy", "batch": 250, "row": 17, "tree": 3, "expected": right, "got": right ^ 1, "message": "",
    }  # fmt: skip


def test_one_bit_of_a_score_is_found_in_the_batch_that_has_it(enlist, model, X):
    enlist(wrong_score_in=10)
    assert bench(model, X, ["spy"], [1, 100], repeats=6).agree
    (found,) = bench(model, X, ["spy"], [1, 10, 100], repeats=6).disagreements
    expected = float(model.score(X)[9])
    assert (found.batch, found.row, found.tree, found.expected) == (10, 9, None, expected)
    assert found.got == np.nextafter(expected, np.inf)
    assert f"scores document 9 {found.got!r} in a batch of 10, where the reference has {expected!r}" in str(found)


def test_of_large_data_a_part_is_compared(enlist, model, X, monkeypatch):
    monkeypatch.setattr("rankwood.scoring.agreement._SCORED", 100 * model.n_trees)
    monkeypatch.setattr("rankwood.scoring.agreement._LEAVES", 10 * model.n_trees)
    enlist(wrong_leaf=(4, 0))
    reference = ReferenceResults(model, X, "single", 1)
    assert reference.n_docs == 100
    found = reference.check(rw.get_engine("spy").prepare(model), [250])
    assert (found.row, found.batch) == (100, 10)  # number 4 of 10 is number 40 of 100, and that is 100 of 250


# ------------------------------------------------------------------------------------------------ the machine


def test_caches_and_processor_are_read_from_the_system(tmp_path, monkeypatch):
    for number, size in enumerate(("32K", "1024K", "36M", "odd")):
        (tmp_path / f"index{number}").mkdir()
        (tmp_path / f"index{number}" / "size").write_text(size + "\n")
    monkeypatch.setattr(machine, "_CACHES", tmp_path)
    assert machine.largest_cache() == 36 << 20
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n")
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    assert machine.cpu_name() == "Some CPU @ 2 GHz"
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "nothing")
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "nothing")
    assert machine.cpu_name()
    assert machine.largest_cache() is None


def test_the_buffer_is_larger_than_the_cache(monkeypatch):
    assert Evictor().n_bytes == 2 << 16
    monkeypatch.setattr(bench_module, "largest_cache", lambda: None)
    evict = Evictor()
    assert evict.n_bytes == 64 << 20
    evict()
    evict()
    assert np.all(evict._buffer == 2.0)
