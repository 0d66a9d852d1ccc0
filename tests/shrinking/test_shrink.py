"""Shrinking from end to end on small data."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.shrinking import early_exit
from rankwood.shrinking.choice import Choosers
from rankwood.shrinking.notebook import Notebook, as_array, as_list
from rankwood.shrinking.path import Path
from rankwood.shrinking.students import Growing

QUICK = rw.ShrinkSettings(
    routes=(rw.Route("selected", "refitted", trees=0.6), rw.Route("grown", "input", features=0.6)),
    factors=(2.0, 3.0, 5.0),
    growing=Growing(min_docs_per_leaf=10),
    refit=rw.Refit(passes=10, rate=3.0, patience=4),
)
LOOSE = {"margin": 0.2, "settings": QUICK, "measure_speed": False}


@pytest.fixture(scope="module")
def problem():
    train, rest = rw.make_ranking(n_queries=200, docs_per_query=12, n_features=8, seed=4).split(0.5)
    valid, test = rest.split(0.6)
    return rw.LambdaMART(n_trees=24, n_leaves=8, learning_rate=0.2).fit(train).ensemble_, train, valid, test


@pytest.fixture(scope="module")
def result(problem):
    model, train, valid, test = problem
    return rw.shrink(model, train, valid, test=test, **LOOSE)


def assert_same(one, other):
    """The same rows, to the bit."""
    assert len(one.rows) == len(other.rows)
    for ours, theirs in zip(one.rows, other.rows, strict=True):
        assert ours.ensemble == theirs.ensemble
        assert ours.as_dict() == theirs.as_dict()
        assert ours.ensemble.metadata == theirs.ensemble.metadata
        assert_array_equal(ours.ensemble.leaf_cover, theirs.ensemble.leaf_cover)
    assert one.ensemble == other.ensemble
    assert one.ensemble.metadata == other.ensemble.metadata


def test_the_path(result, problem):
    model, _, valid, test = problem
    assert [row.route for row in result.rows[:2]] == ["input", "refitted input"]
    sizes = [row.n_leaves for row in result.rows[2:]]
    assert all(size <= round(192 / factor) for size, factor in zip(sizes, (2, 3, 5), strict=True))
    for row in result.rows:
        assert row.n_leaves == row.ensemble.n_leaves
        assert row.n_features == len(np.unique(row.ensemble.feature))
        assert row.valid == rw.evaluate(row.ensemble, valid)["nDCG@10"]
        assert row.test == rw.evaluate(row.ensemble, test)["nDCG@10"]
    assert result.rows[0].ensemble == model
    assert (result.accepted, result.reached, result.judging) == (True, True, "folds")
    assert result.chosen is min(result.rows[2:], key=lambda row: row.n_leaves)
    assert result.ensemble.metadata.keys() == {"shrink"}  # what the training of the input noted is not true of it
    assert result.ensemble.metadata["shrink"]["route"] == result.chosen.route
    assert all(row.ensemble.leaf_cover is not None for row in result.rows[2:])
    assert result.factor == 192 / result.chosen.n_leaves
    assert result.speed_up is None
    compared = rw.compare(model, result.ensemble, test)
    assert (result.test.difference, result.test.interval) == (compared.difference, compared.interval)
    assert result.summary().startswith(f"{sizes[-1]} of 192 leaves, ")
    assert "60 queries by cross-validation" in result.summary()


def test_bits_do_not_depend_on_threads_or_repetition(result, problem):
    model, train, valid, test = problem
    for n_threads in (1, 2):
        assert_same(result, rw.shrink(model, train, valid, test=test, n_threads=n_threads, **LOOSE))


def test_out_of_fold_values_are_recomputed(problem):
    """What a fold judges is the best model by the other folds: found anew from all candidates of the path."""
    model, train, valid, _ = problem
    choosers = Choosers(np.ones(valid.n_queries), 5, 0)
    on_train, on_valid = (Evaluator(data, "nDCG@10", by_query=True) for data in (train, valid))
    path = Path(model, on_train, on_valid, [], choosers, QUICK, Notebook(None, {}))
    sizes = [96, 64]
    found = path.best(list(path.walk(sizes, lambda work: None)))
    before = []
    for number, size in enumerate(found):
        noted = [
            facts for name, (_, facts) in path.notebook.steps.items()
            if name.endswith(f", {' > '.join(map(str, sizes[:number + 1]))} leaves")
        ]  # fmt: skip
        assert len(noted) == 2
        before.insert(0, np.array([facts["means"] for facts in noted]))
        weights = [0.5**age for age in range(len(before))]  # of this size and of those before
        best = np.argmax(np.average(before, weights=weights, axis=0), axis=0)
        for query in range(valid.n_queries):
            of_fold = best[choosers.fold[query] + 1]
            assert size.unseen[query] == noted[of_fold]["unseen"][query]
        assert_array_equal(size.candidate.values, noted[best[0]]["values"])


# Going on.


def counted_steps(monkeypatch):
    """Names of the steps that are made."""
    made, step = [], Notebook.step

    def counted(self, name, make):
        def noting():
            made.append(name)
            return make()

        return step(self, name, noting)

    monkeypatch.setattr(Notebook, "step", counted)
    return made


def stop_after(n_calls):
    calls = []

    def progress(done, total):
        calls.append(done)
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("n_calls", [1, 4, 6])
def test_resuming_gives_the_same_bits_and_does_no_step_twice(result, problem, tmp_path, monkeypatch, n_calls):
    model, train, valid, test = problem
    given = {**LOOSE, "test": test, "checkpoint": tmp_path / "steps.rw"}
    made = counted_steps(monkeypatch)
    if n_calls == 1:  # before any size is there
        with pytest.raises(KeyboardInterrupt):
            rw.shrink(model, train, valid, progress=stop_after(1), **given)
    else:
        early = rw.shrink(model, train, valid, progress=stop_after(n_calls), **given)
        assert early.interrupted
        assert 3 <= len(early.rows) < len(result.rows)
        for ours, whole in zip(early.rows, result.rows, strict=False):
            assert ours.ensemble == whole.ensemble
    n_made = len(made)
    assert_same(result, rw.shrink(model, train, valid, **given))
    assert len(made) == len(set(made)) > n_made
    n_made = len(made)
    works = []
    again = rw.shrink(model, train, valid, progress=lambda done, total: works.append((done, total)), **given)
    assert_same(result, again)
    assert len(made) == n_made
    assert set(works) == {(0.0, 0.0)}


def test_a_checkpoint_of_something_else_is_refused(problem, tmp_path):
    model, train, valid, _ = problem
    given = {**LOOSE, "checkpoint": tmp_path / "steps.rw"}
    rw.shrink(model, train, valid, factor=2, **given)
    content = (tmp_path / "steps.rw").read_bytes()
    for changed, words in (
        ((model, valid, valid), "other training data"),
        ((model, train, train), "other validation data"),
        ((model.replace(base=1.0), train, valid), "other model"),
    ):
        with pytest.raises(rw.RankwoodError, match=words):
            rw.shrink(*changed, **given)
    for more, words in (
        ({"unlabelled": valid}, "other unlabelled data"),
        ({"measure": "nDCG@5"}, "other measure"),
        ({"settings": replace(QUICK, seed=1)}, "other settings"),
        ({"judge": None}, "other folds"),
    ):
        with pytest.raises(rw.RankwoodError, match=words):
            rw.shrink(model, train, valid, **{**given, **more})
    assert (tmp_path / "steps.rw").read_bytes() == content


def test_other_sizes_take_up_only_what_they_share(problem, tmp_path):
    """A model depends on the sizes before it, so another path of sizes makes its own."""
    model, train, valid, _ = problem
    given = {**LOOSE, "checkpoint": tmp_path / "steps.rw"}
    rw.shrink(model, train, valid, **given)
    short = {**given, "settings": replace(QUICK, factors=(2.0, 5.0))}
    fresh = {**short, "checkpoint": None}
    assert_same(rw.shrink(model, train, valid, **short), rw.shrink(model, train, valid, **fresh))


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_ctrl_c_ends_with_the_sizes_there_are(problem):
    model, train, valid, _ = problem
    calls = []

    def press(done, total):
        calls.append(done)
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    early = rw.shrink(model, train, valid, progress=press, **LOOSE)
    assert early.interrupted
    assert len(early.rows) == 3
    assert early.accepted
    assert len(calls) == 4
    assert signal.getsignal(signal.SIGINT) is before
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        rw.shrink(model, train, valid, progress=press, on_interrupt="raise", **LOOSE)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_a_second_ctrl_c_does_not_wait(problem, monkeypatch):
    model, train, valid, _ = problem
    refit, n_calls = Path._refitted, 0

    def pressed(self, student):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 5:  # when there is a size
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("not reached")
        return refit(self, student)

    monkeypatch.setattr(Path, "_refitted", pressed)
    with pytest.raises(KeyboardInterrupt):
        rw.shrink(model, train, valid, **LOOSE)


def test_progress_grows_to_the_whole(problem):
    model, train, valid, _ = problem
    works = []
    rw.shrink(model, train, valid, progress=lambda done, total: works.append((done, total)), **LOOSE)
    done = [now for now, _ in works]
    assert done == sorted(done)
    assert len({total for _, total in works}) == 1
    assert done[-1] == pytest.approx(works[0][1])
    assert len(works) == 1 + 3 * 2


def test_notes_hold_missing_values():
    values = np.array([0.5, np.nan, 1.0])
    assert as_list(values) == [0.5, None, 1.0]
    assert_array_equal(as_array(as_list(values)), values)


# Early exit.


@pytest.fixture(scope="module")
def long_queries():
    train, rest = rw.make_ranking(n_queries=240, docs_per_query=50, n_features=10, seed=4).split(0.4)
    valid, test = rest.split(0.6)
    model = rw.LambdaMART(n_trees=70, n_leaves=8, learning_rate=0.15).fit(train).ensemble_
    return model, train, valid, test


EXIT = {**LOOSE, "factor": 2, "exit": 0.005}


@pytest.fixture
def free_checkpoints(monkeypatch):
    """Checkpoints that take no time, so that they are worth it in small models, too."""
    monkeypatch.setattr(early_exit, "CHECKPOINT_LEAVES", 0.0)


@pytest.mark.usefixtures("free_checkpoints")
@pytest.mark.parametrize("judge", ["folds", "other"])
def test_early_exit_is_the_last_row_to_be_judged(long_queries, judge):
    model, train, valid, test = long_queries
    given = {"judge": test} if judge == "other" else {"test": test}
    found, plain = (rw.shrink(model, train, valid, **{**EXIT, **given, "exit": loss}) for loss in (0.005, False))
    place = found.rows.index(found.exit)
    assert found.chosen is found.exit
    assert found.rows[:place] + found.rows[place + 1 :] == plain.rows
    assert found.rows[place - 1] == plain.chosen
    assert found.ensemble.replace(exit=None) == plain.ensemble
    assert found.ensemble.exit == rw.early_exit(plain.ensemble, valid, loss=0.005).exit
    assert found.ensemble.metadata.keys() == {"shrink", "early_exit"}
    assert found.chosen.valid == rw.evaluate(found.ensemble, valid)["nDCG@10"]
    judges = test if judge == "other" else valid
    trees = found.ensemble.trees_evaluated(judges.X, qid=judges.qid)
    assert found.exit.trees_evaluated == pytest.approx(trees.mean() / found.ensemble.n_trees)
    assert found.exit.trees_evaluated < 1 == plain.chosen.trees_evaluated
    share = round(100 * found.exit.trees_evaluated)
    assert f"of 70 trees ({share} % evaluated, with early exit), " in found.summary()
    if judge == "other":
        lost = rw.evaluate(model, test)["nDCG@10"] - rw.evaluate(found.ensemble, test)["nDCG@10"]
        assert found.proof.difference == pytest.approx(-lost)
    else:
        assert found.chosen.test == found.test.other_mean == rw.evaluate(found.ensemble, test)["nDCG@10"]


@pytest.mark.usefixtures("free_checkpoints")
def test_a_fold_judges_exit_as_the_others_learnt_it(long_queries):
    model, train, valid, _ = long_queries
    found = rw.shrink(model, train, valid, **EXIT)
    small, choosers = found.ensemble.replace(exit=None), Choosers(np.ones(valid.n_queries), QUICK.folds, 0)
    changed = np.empty(valid.n_queries)
    for fold in range(QUICK.folds):
        swift = rw.early_exit(small, valid.select_queries(choosers.fold != fold), loss=0.005)
        left_out = valid.select_queries(choosers.fold == fold)
        one, other = (rw.evaluate(each, left_out).per_query["nDCG@10"] for each in (small, swift))
        changed[choosers.fold == fold] = other - one
    without = found.rows[found.rows.index(found.exit) - 1].proof
    assert found.proof.difference == pytest.approx(without.difference + changed.mean())
    assert changed.any()


@pytest.mark.usefixtures("free_checkpoints")
def test_early_exit_is_dropped_unless_shown(long_queries, problem):
    model, train, valid, _ = long_queries
    without = rw.shrink(model, train, valid, **{**EXIT, "exit": False})
    tight = {**EXIT, "exit": 1.0, "margin": 1e-6 - without.proof.lower}  # just enough without
    found = rw.shrink(model, train, valid, **tight)
    assert not found.exit.accepted
    assert found.ensemble == without.ensemble
    assert found.chosen == replace(without.chosen, proof=found.chosen.proof)
    assert "; no early exit: with it, that it loses less than " in found.summary()
    model, train, valid, _ = problem  # with no checkpoint before the last tree
    found = rw.shrink(model, train, valid, exit=True, **LOOSE)
    assert found.exit.ensemble.exit.never
    assert found.ensemble.exit is None
    assert "; no early exit: it would save no time at a loss of 0.0005 at most" in found.summary()
    assert rw.shrink(model, train, valid, exit=True, **{**LOOSE, "margin": 1e-9}).exit is None


@pytest.mark.usefixtures("free_checkpoints")
def test_exit_is_timed_on_whole_queries(long_queries):
    model, train, valid, _ = long_queries
    found = rw.shrink(model, train, valid, **{**EXIT, "measure_speed": True})
    assert len(found.timings) == len(found.rows)
    assert all(row.us_per_doc == timing.us_per_doc for row, timing in zip(found.rows, found.timings, strict=True))
    assert {timing.batch for timing in found.timings} == {round(valid.n_docs / 2)}  # in two calls of whole queries


@pytest.mark.parametrize("loss", [-1.0, float("nan"), "much"])
def test_a_loss_is_a_number(problem, loss):
    model, train, valid, _ = problem
    with pytest.raises(rw.RankwoodError, match="exit must be a number of 0 or more"):
        rw.shrink(model, train, valid, exit=loss, **LOOSE)


# Models and data of all kinds.


def test_negative_weights_of_trees(problem):
    model, train, valid, _ = problem
    signs = np.where(np.arange(model.n_trees) % 3, 1.0, -2.0)
    leaf_value = model.leaf_value / np.repeat(signs, np.diff(model.leaf_offsets))
    negative = model.replace(tree_weights=model.tree_weights * signs, leaf_value=leaf_value)
    np.testing.assert_allclose(negative.score(train.X), model.score(train.X))
    one, other = (rw.shrink(each, train, valid, factor=2, **LOOSE) for each in (model, negative))
    for ours, theirs in zip(one.rows[1:], other.rows[1:], strict=True):
        assert (ours.route, ours.n_leaves) == (theirs.route, theirs.n_leaves)
        np.testing.assert_allclose(theirs.ensemble.score(valid.X), ours.ensemble.score(valid.X), rtol=1e-4, atol=1e-5)


def test_features_are_found_by_name(problem):
    model, train, valid, test = problem
    names = [f"f{number}" for number in range(8)]
    named = model.replace(feature_names=names)
    order = np.random.default_rng(0).permutation(8)
    parts = [
        part.replace(X=part.X[:, order], feature_names=[names[place] for place in order])
        for part in (train, valid, test)
    ]
    plain = rw.shrink(model, train, valid, test=test, unlabelled=test, **LOOSE)
    mixed = rw.shrink(named, *parts[:2], test=parts[2], unlabelled=parts[2], **LOOSE)
    assert mixed.ensemble.feature_names == tuple(names)
    for ours, theirs in zip(plain.rows, mixed.rows, strict=True):
        assert_array_equal(ours.ensemble.leaf_value, theirs.ensemble.leaf_value)
        assert (ours.proof, ours.test) == (theirs.proof, theirs.test)


def test_weights_of_queries_count(problem):
    model, train, valid, _ = problem
    weights = np.random.default_rng(1).integers(1, 4, valid.n_queries).astype(float)
    weighted = valid.replace(query_weights=weights)
    found = rw.shrink(model, train, weighted, **LOOSE)
    for row in found.rows:
        assert row.valid == pytest.approx(rw.evaluate(row.ensemble, weighted)["nDCG@10"])
    proof = found.rows[2].proof
    judged = rw.shrink(model, train, valid, judge=weighted, **LOOSE).rows[2]
    before, after = (rw.evaluate(each, weighted)["nDCG@10"] for each in (model, judged.ensemble))
    assert judged.proof.difference == pytest.approx(after - before)
    assert proof.n_queries == valid.n_queries


def test_scattered_rows(result, problem):
    """Rows of a query need not stand together."""
    model, *parts = problem

    def scattered(data):
        """The same queries in the same order, by their first documents, and documents in their order in each."""
        qid, first = np.repeat(np.arange(data.n_queries), data.queries.sizes), data.offsets[:-1]
        rest = np.random.default_rng(3).permutation(np.setdiff1d(np.arange(data.n_docs), first))
        for query in range(data.n_queries):
            rest[qid[rest] == query] = np.sort(rest[qid[rest] == query])
        rows = np.concatenate([first, rest])
        return rw.Dataset(data.X[rows], data.y[rows], qid=qid[rows])

    train, valid, test = map(scattered, parts)
    assert train.order is not None
    assert_same(result, rw.shrink(model, train, valid, test=test, **LOOSE))


def test_unlabelled_documents_are_learnt_from(result, problem):
    model, train, valid, test = problem
    logs = rw.Dataset(test.X, group=test.queries.sizes)
    one = rw.shrink(model, train, valid, test=test, unlabelled=logs, **LOOSE)
    other = rw.shrink(model, train, valid, test=test, unlabelled=[test.replace(y=test.y[::-1])], **LOOSE)
    assert_same(one, other)  # labels are not looked at
    assert one.rows[1].ensemble == result.rows[1].ensemble  # which no unlabelled document touches
    assert one.rows[2].ensemble != result.rows[2].ensemble


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_models_of_others(problem, library):
    package = pytest.importorskip(library, reason=f"PEER LEFT OUT: {library} is not installed")
    _, train, valid, _ = problem
    if library == "lightgbm":
        how = {"objective": "lambdarank", "num_leaves": 8, "min_data_in_leaf": 10, "verbose": -1}
        model = package.train(how, package.Dataset(train.X, train.y, group=train.queries.sizes), 20)
    else:
        rows = package.DMatrix(train.X, train.y, group=train.queries.sizes)
        model = package.train({"objective": "rank:ndcg", "max_depth": 3}, rows, 20)
    found = rw.shrink(rw.load_model(model), train, valid, factor=3, **LOOSE)
    assert found.accepted
    assert found.reached
    assert found.ensemble.n_leaves <= round(found.rows[0].n_leaves / 3)


def test_a_fitted_ranker_is_taken(problem):
    _, train, valid, _ = problem
    ranker = rw.MART(n_trees=6, n_leaves=4).fit(train)
    assert rw.shrink(ranker, train, valid, factor=2, **LOOSE).ensemble.n_leaves <= 12


def test_a_forest_of_large_trees_and_missing_values(problem):
    """More leaves than a byte can number, and NaN among the features."""
    _, train, valid, _ = problem
    rng = np.random.default_rng(0)
    train, valid = (
        data.replace(X=np.where(rng.random(data.X.shape) < 0.1, np.nan, data.X).astype(np.float32))
        for data in (train, valid)
    )
    forest = rw.RandomForest(n_trees=4).fit(train).ensemble_
    assert np.diff(forest.leaf_offsets).max() > 256
    found = rw.shrink(forest, train, valid, factor=10, **LOOSE)
    assert found.accepted
    assert found.ensemble.n_leaves <= forest.n_leaves / 10


def test_another_measure(problem):
    model, train, valid, _ = problem
    found = rw.shrink(model, train, valid, measure="AP(rel=2)", convention="letor", factor=2, **LOOSE)
    assert found.measure == "AP(rel=2)"
    assert found.rows[0].valid == rw.evaluate(model, valid, "AP(rel=2)", convention="letor")["AP(rel=2)"]


def test_one_feature_and_few_splits():
    """Nothing is left over to take away, and nothing breaks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1)).astype(np.float32)
    data = rw.Dataset(X, (X[:, 0] > 0).astype(int) + (X[:, 0] > 1), group=[10] * 60)
    model = rw.Ensemble.from_trees([(0, 0.0, 0.0, (0, 1.0, 1.0, 2.0)), (0, 0.5, 0.0, 0.1)])
    found = rw.shrink(model, data, data, **{**LOOSE, "margin": 0.5})
    assert found.accepted
    assert found.ensemble.n_leaves <= 3


# What is asked for.


def test_targets(problem):
    model, train, valid, _ = problem
    found = rw.shrink(model, train, valid, leaves=50, **LOOSE)
    assert found.reached
    assert found.ensemble.n_leaves <= 50
    assert found.rows[-1].n_leaves <= 50
    fast = rw.shrink(model, train, valid, budget_us=1e6, **{**LOOSE, "measure_speed": True})
    assert fast.reached
    assert fast.chosen.n_leaves == max(row.n_leaves for row in fast.rows[2:])  # all are within the budget
    assert fast.speed_up > 0
    assert all(row.us_per_doc > 0 for row in fast.rows)
    never = rw.shrink(model, train, valid, budget_us=1e-9, **LOOSE)
    assert (never.accepted, never.reached) == (True, False)
    assert "nothing as small as was asked for" in never.summary()
    cheap = rw.shrink(model, train, valid, cost="us", **{**LOOSE, "measure_speed": True})
    assert cheap.chosen.us_per_doc == min(row.us_per_doc for row in cheap.rows[2:])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"leaves": 5, "factor": 2}, "leaves and factor both say how small"),
        ({"factor": -1}, "factor must be a positive number"),
        ({"factor": 0.5}, "factor says how many times fewer leaves: above 1 and, with 192 leaves, at most 96, got 0.5"),
        ({"leaves": 192}, "the model has 192 leaves: a smaller one must have 2 to 191, got 192"),
        ({"margin": 0.0}, "margin must be a positive number"),
        ({"judge": 1.5}, "must lie between 0 and 1"),
        ({"measure": "nDGC"}, "nDGC"),
    ],
)
def test_mistakes(problem, more, words):
    model, train, valid, _ = problem
    with pytest.raises(rw.RankwoodError, match=words):
        rw.shrink(model, train, valid, **{**LOOSE, **more})


def test_what_cannot_be_shrunk_is_said(problem):
    _, train, valid, _ = problem
    with pytest.raises(rw.ModelError, match="fewer than two splits"):
        rw.shrink(rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0)], n_features=8), train, valid)
    with pytest.raises(rw.ModelError, match="shrinking takes an Ensemble or a fitted ranker, got str"):
        rw.shrink("model.rw", train, valid)
    for settings, words in (({"routes": ()}, "at least one route"), ({"factors": (1.0,)}, "above 1, got"),
                            ({"folds": 1}, "at least 2 folds")):  # fmt: skip
        with pytest.raises(rw.RankwoodError, match=words):
            rw.ShrinkSettings(**settings)


# What is shown.


def test_a_hopeless_size_is_not_accepted(problem):
    """Two leaves cannot rank as 192 do: the input comes back as it was."""
    model, train, valid, test = problem
    found = rw.shrink(model, train, valid, test=test, settings=replace(QUICK, factors=(80.0,)), measure_speed=False)
    assert not found.accepted
    assert found.ensemble == model
    assert found.rows[2].proof.difference < -0.005
    assert not found.rows[2].proof.holds
    assert found.test is None
    assert found.summary().startswith("no smaller model was accepted: the model keeps its 192 leaves; of 2, that it ")


def test_a_size_after_one_that_fails_may_be_accepted(problem, monkeypatch):
    from rankwood.pruning.accept import Proof

    model, train, valid, _ = problem
    of, n_proofs = Proof.of.__func__, 0

    def failing(cls, *values, **how):
        nonlocal n_proofs
        n_proofs += 1
        proof = of(cls, *values, **how)
        return replace(proof, p_value=0.9, p_adjusted=0.9) if n_proofs == 2 else proof

    monkeypatch.setattr(Proof, "of", classmethod(failing))
    found = rw.shrink(model, train, valid, **LOOSE)
    assert [row.accepted for row in found.rows] == [False, False, True, False, True]
    assert found.chosen is found.rows[4]


def test_too_few_queries_says_how_many_would_do(problem):
    model, train, valid, _ = problem
    found = rw.shrink(model, train, valid, **{**LOOSE, "margin": 0.005, "settings": replace(QUICK, factors=(1.2,))})
    proof = found.rows[2].proof
    assert not found.accepted
    assert proof.needed > proof.n_queries == 60
    assert "cannot be shown with 60 queries" in found.summary()
    assert found.summary().endswith(f"about {-(-proof.needed // 10) * 10} would do")
    few = rw.shrink(model, train, valid.select_queries(range(12)), **LOOSE)
    assert (few.judging, few.accepted) == ("choosing", False)


def test_queries_that_chose_nothing_judge(problem):
    model, train, valid, test = problem
    for judge, n_queries in ((test, test.n_queries), (0.5, valid.n_queries // 2)):
        found = rw.shrink(model, train, valid, judge=judge, **LOOSE)
        assert found.judging == "unseen"
        assert found.rows[2].proof.n_queries == n_queries
    judged = rw.shrink(model, train, valid, judge=test, **LOOSE)
    before, after = (rw.evaluate(each, test)["nDCG@10"] for each in (model, judged.rows[2].ensemble))
    assert judged.rows[2].proof.difference == pytest.approx(after - before)
    nothing = rw.shrink(model, train, valid, judge=None, **LOOSE)
    assert (nothing.judging, nothing.accepted) == ("choosing", False)


def test_fewer_queries_to_learn_from(problem):
    model, train, valid, _ = problem
    settings = replace(QUICK, max_queries=30)
    one = rw.shrink(model, train, valid, factor=2, **{**LOOSE, "settings": settings})
    other = rw.shrink(model, train, valid, factor=2, **{**LOOSE, "settings": replace(settings, seed=1)})
    assert one.rows[1].ensemble != other.rows[1].ensemble
