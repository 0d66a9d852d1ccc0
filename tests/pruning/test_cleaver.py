"""CLEaVER as a whole: what it promises, on any ensemble."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.outputs import TreeOutputs, needed_bytes, unsigned_weights
from rankwood.pruning.pruner import Pruner
from rankwood.pruning.strategies import STRATEGIES, Chooser
from strategies.ensembles import ensembles
from strategies.pruning import rankings

pytestmark = pytest.mark.native
SHORT = rw.LineSearch(iterations=4)
TIMED = rw.PruningSettings(search=SHORT)
QUICK = rw.PruningSettings(search=SHORT, measure_speed=False)


@pytest.fixture(scope="module")
def parts():
    data = rw.make_ranking(n_queries=90, docs_per_query=15, n_features=8, seed=4)
    return [data.select_queries(range(start, start + 30)) for start in (0, 30, 60)]


@pytest.fixture(scope="module")
def model(parts):
    return rw.LambdaMART(n_trees=16, n_leaves=6, learning_rate=0.2).fit(parts[0]).ensemble_


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_gives_a_table_that_is_true(parts, model, strategy):
    train, valid, test = parts
    how = replace(TIMED, seed=1, victims="train" if strategy == "skip" else "valid")
    result = rw.cleaver(model, train, valid, test=test, strategy=strategy, rates=(0.25, 0.5), variants="line-search",
                        accept="quality", settings=how)  # fmt: skip
    assert [row.rate for row in result.rows] == [0.0, 0.25, 0.5]
    assert result.rows[0].ensemble is model
    for row, most in zip(result.rows, (16, 12, 8), strict=True):
        assert row.n_trees == row.ensemble.n_trees <= most
        for name, data in (("train", train), ("valid", valid), ("test", test)):
            assert getattr(row, name) == rw.evaluate(row.ensemble, data)["nDCG@10"]
    for row in result.rows[1:]:
        compared = rw.compare(model, row.ensemble, valid)
        assert row.p_valid == compared.p_randomisation
        assert row.accepted == (row.valid >= result.rows[0].valid)
        assert row.speed_up > 0
    assert result.valid_after >= result.valid_before
    json.dumps(result.table, allow_nan=False)
    assert result.curves()["line-search"]["n_trees"] == [row.n_trees for row in result.rows[1:]]


@settings(max_examples=15)
@given(st.data())
def test_any_ensemble_is_never_worse_on_validation_data(data):
    """Bases, negative and zero weights, missing values, constant trees, queries of one document."""
    model = data.draw(ensembles(max_trees=6))
    train, valid = (data.draw(rankings(model.n_features)) for _ in range(2))
    how = {
        "rates": (0.0, 0.4, 0.8),
        "accept": "quality",
        "settings": replace(QUICK, search=rw.LineSearch(iterations=2)),
    }
    labels = [valid.query(q).y for q in range(valid.n_queries)]
    assume(any(len(set(found)) > 1 for found in labels))  # else nothing tells models apart
    result = rw.cleaver(
        model, train, valid, variants=("line-search", "gradient", "refit", "distil"), n_threads=1, **how
    )
    before, after = (rw.evaluate(m, valid)["nDCG@10"] for m in (model, result.ensemble))
    assert after >= before
    assert (result.valid_before, result.valid_after) == (before, after)
    if result.accepted:
        assert result.ensemble.n_trees < model.n_trees or after > before
    else:
        assert result.ensemble is model
        assert "no smaller model was accepted" in result.summary()
    again = rw.cleaver(model, train, valid, variants=("line-search", "gradient", "refit", "distil"), n_threads=3, **how)
    assert again.table == result.table
    assert again.ensemble == result.ensemble


def test_ordinal_models_keep_signs_and_base_but_no_longer_tell_grades(parts):
    train, valid, _ = parts
    model = rw.MART(n_trees=6, n_leaves=4, task="ordinal").fit(train).ensemble_
    result = rw.cleaver(model, train, valid, rates=(0.5,), judge=0.5, accept=rw.Acceptance("non-inferior", 10.0),
                        settings=TIMED)  # fmt: skip
    assert result.accepted
    assert (result.ensemble.tree_weights < 0).all()
    assert result.ensemble.base == model.base
    with pytest.raises(rw.ModelError, match="was not trained with task='ordinal'"):
        rw.grade_probabilities(result.ensemble, valid.X)


def test_forests_with_many_leaves(parts):
    train, valid, _ = parts
    data = rw.make_ranking(n_queries=40, docs_per_query=60, n_features=8, seed=4)
    model = rw.RandomForest(6, random_state=0).fit(data).ensemble_
    outputs = TreeOutputs.of(model, train)
    assert outputs.codes.dtype == np.uint16
    assert outputs.scores(unsigned_weights(model)).tolist() == model.score(train.X).tolist()
    result = rw.cleaver(model, train, valid, rates=(0.5,), variants="refit", settings=QUICK)
    assert result.rows[1].n_trees <= 3


def test_rules_of_acceptance(parts, model):
    train, valid, _ = parts
    how = {"rates": (0.3, 0.6, 0.9), "settings": QUICK, "variants": "line-search"}
    strict = rw.cleaver(model, train, valid, accept="quality", **how)
    loose = rw.cleaver(model, train, valid, accept="not-significant", **how)
    margin = rw.cleaver(model, train, valid, judge=0.5, accept=rw.Acceptance("non-inferior", margin=0.5), **how)
    assert loose.ensemble.n_trees <= strict.ensemble.n_trees
    assert [row.accepted for row in loose.rows[1:]] == [
        row.valid >= strict.valid_before or row.p_valid > 0.05 for row in strict.rows[1:]
    ]
    p_values = [row.p_inferior for row in margin.rows[1:]]
    assert [row.accepted for row in margin.rows[1:]] == (rw.holm(p_values) <= 0.05).tolist()
    assert all(row.accepted for row in margin.rows)


@pytest.fixture(scope="module")
def misled():
    """A model of two trees, data by which the second is useless, and data by which it alone is of use."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    model = rw.Ensemble.from_trees([(0, 0.0, 0.0, 2.0), (1, 0.0, 0.0, 1.0)])
    by_first, by_second = (rw.Dataset(X, (X[:, column] > 0).astype(int), group=[8] * 50) for column in (0, 1))
    return model, by_first, by_second


def test_a_loss_on_test_data_is_said(misled):
    model, valid, test = misled
    how = {"rates": 0.5, "variants": "line-search", "settings": QUICK}
    result = rw.cleaver(model, valid, valid, test=test, **how)
    assert result.accepted
    assert result.test == rw.compare(model, result.ensemble, test)
    assert result.test.p_randomisation == result.chosen.p_test < 0.05
    assert result.is_loss
    low, high = result.test.interval
    said = f"{result.test.difference:+.4f} (95 % interval {low:+.4f} .. {high:+.4f}, p = {result.chosen.p_test:.4f})"
    values = f"on test data {result.chosen.test:.4f} (before: {result.rows[0].test:.4f})"
    for text in (said, values, "significant loss"):
        assert text in result.summary()
        assert text in repr(result)


def test_no_loss_is_claimed_without_one(misled):
    model, valid, test = misled
    how = {"rates": 0.5, "variants": "line-search", "settings": QUICK}
    gained = rw.cleaver(model, valid, valid, test=valid, **how)
    assert gained.accepted
    assert not gained.is_loss
    assert "on test data" in gained.summary()
    assert "loss" not in gained.summary()
    other_level = rw.Acceptance(alpha=1e-9)
    lenient = rw.cleaver(model, valid, valid, test=test, accept=other_level, **how)  # the same loss
    assert lenient.test.difference < 0
    assert not lenient.is_loss
    untested = rw.cleaver(model, valid, valid, **how)
    assert (untested.test, untested.is_loss) == (None, False)
    assert "test" not in untested.summary()
    lone = rw.cleaver(model, valid, valid, test=test.query(0), **how)  # one query tells nothing
    assert (lone.test, lone.is_loss) == (None, False)
    assert "too few queries" in lone.summary()
    both = rw.Dataset(valid.X, 2 * valid.y + test.y, group=valid.queries.sizes)  # neither tree can go
    kept = rw.cleaver(model, both, both, test=test, **how)
    assert (kept.accepted, kept.test, kept.is_loss) == (False, None, False)


def test_what_cannot_be_told_is_not_accepted():
    assert not rw.Acceptance("not-significant").passes(False, None)
    rule = rw.Acceptance("non-inferior", 0.9)
    assert not rule.passes(True, 1.0)
    proof = rw.Proof.of(np.array([0.5]), np.array([0.6]), rule)
    assert not rule.passes(True, None, proof)
    assert "cannot be shown with 1 quer" in proof.words()


def test_other_data_may_judge(parts, model):
    train, valid, judge = parts
    result = rw.cleaver(model, train, valid, judge=judge, rates=(0.3, 0.6), accept="quality", settings=QUICK)
    full = result.rows[0]
    for row in result.rows:
        assert row.judged == row.worth == rw.evaluate(row.ensemble, judge)["nDCG@10"]
        assert row.valid == rw.evaluate(row.ensemble, valid)["nDCG@10"]
        if row.variant != "input":
            assert row.accepted == (row.judged >= full.judged and row.valid >= full.valid)
            assert row.p_valid == rw.compare(model, row.ensemble, judge).p_randomisation


def test_queries_are_set_aside_to_judge_by(parts, model):
    train, valid, _ = parts
    kept, aside = valid.split(0.6, seed=0)
    how = {"rates": (0.3,), "settings": QUICK}
    one = rw.cleaver(model, train, valid, judge=0.4, **how)
    two = rw.cleaver(model, train, kept, judge=aside, **how)
    assert [row.judged for row in one.rows] == [row.judged for row in two.rows]
    assert [row.ensemble for row in one.rows] == [row.ensemble for row in two.rows]
    assert one.valid_before == rw.evaluate(model, valid)["nDCG@10"]
    with pytest.raises(rw.RankwoodError, match=r"to judge by must lie between 0 and 1, got 1\.5"):
        rw.cleaver(model, train, valid, judge=1.5)
    with pytest.raises(rw.DataError, match="judge must be a Dataset"):
        rw.cleaver(model, train, valid, judge="test")


def test_metadata_says_what_was_done(parts, model):
    train, valid, _ = parts
    result = rw.cleaver(
        model,
        train,
        valid,
        rates=(0.5,),
        strategy="skip",
        judge=0.5,
        accept=rw.Acceptance("non-inferior", 0.9),
        settings=TIMED,
    )
    note = result.ensemble.metadata["cleaver"]
    assert (note["strategy"], note["rate"], note["n_trees_before"]) == ("skip", 0.5, 16)
    assert note["n_trees_after"] == result.ensemble.n_trees
    assert note["search"]["iterations"] == 4
    assert note["proof"] == result.proof.as_dict()
    assert note["proof"]["holds"]
    assert "parameters" in result.ensemble.metadata or "learner" in result.ensemble.metadata


def test_trees_driven_to_zero_go():
    """A tree that only hurts is found and removed though the rate asks for nothing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300).astype(float)
    data = rw.Dataset(np.stack([rng.integers(0, 2, 300), y], axis=1), y, group=[30] * 10)
    model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 100.0), (1, 0.5, 0.0, (1, 1.5, 1.0, 2.0))])
    how = rw.PruningSettings(measure_speed=False)
    result = rw.cleaver(model, data, data, rates=(0.0,), accept="quality", settings=how)
    assert result.ensemble == model.select([1])
    assert result.valid_after == 1.0 > result.valid_before


def test_refit_reaches_the_ensemble(parts, model):
    train, valid, _ = parts
    result = rw.cleaver(model, train, valid, rates=(0.5,), variants=("line-search", "refit"), settings=TIMED)
    plain, refitted = result.rows[1:]
    assert refitted.valid >= plain.valid
    assert refitted.n_trees == plain.n_trees
    assert refitted.valid == rw.evaluate(refitted.ensemble, valid)["nDCG@10"]


def test_pruned_models_keep_what_training_knew(parts, model):
    train, valid, _ = parts
    covers = [tuple(model.tree(number).leaf_cover) for number in range(model.n_trees)]
    result = rw.cleaver(model, train, valid, rates=(0.5,), variants=("line-search", "refit", "distil"), settings=TIMED)
    for row in result.rows:
        assert {tuple(row.ensemble.tree(number).leaf_cover) for number in range(row.n_trees)} <= set(covers)


def test_other_measures_and_weights_and_sample(parts, model):
    train, valid, _ = parts
    weighted = rw.Dataset(valid.X, valid.y, qid=valid.qid, query_weights=np.arange(1.0, 31.0))
    result = rw.cleaver(model, train, weighted, measure="AP", convention="trec", rates=(0.4,),
                        settings=replace(QUICK, max_queries=20))  # fmt: skip
    assert result.measure == "AP"
    full = rw.cleaver(model, train, weighted, measure="AP", convention="trec", rates=(0.4,), settings=TIMED)
    assert full.valid_before == rw.evaluate(model, weighted, "AP", convention="trec")["AP"]
    assert (
        full.rows[1].p_valid
        == rw.compare(model, full.rows[1].ensemble, weighted, "AP", convention="trec").p_randomisation
    )


def test_features_are_found_by_name(parts, model):
    train, valid, _ = parts
    names = [f"f{i}" for i in range(8)]
    named = model.replace(feature_names=names)
    turned = rw.Dataset(valid.X[:, ::-1], valid.y, qid=valid.qid, feature_names=names[::-1])
    train, valid = (rw.Dataset(data.X, data.y, qid=data.qid, feature_names=names) for data in (train, valid))
    one, two = (rw.cleaver(named, train, data, rates=(0.5,), settings=TIMED) for data in (valid, turned))
    assert one.ensemble == two.ensemble


def test_memory_is_stated_and_refused(parts, model):
    train, valid, _ = parts
    assert needed_bytes(model, 1000) == 1000 * (16 + 64)
    with pytest.raises(rw.RankwoodError, match=r"894 documents reach in 16 trees need 71,520 bytes.*max_queries=22"):
        rw.cleaver(model, train, valid, settings=rw.PruningSettings(max_memory=60_000))
    small = replace(TIMED, max_memory=60_000, max_queries=22)
    sampled = rw.cleaver(model, train, valid, rates=(0.5,), settings=small)
    assert sampled.needed_bytes <= 60_000


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rates": ()}, "rates are shares"),
        ({"rates": (0.5, 1.0)}, "rates are shares of the trees to take out, from 0 to below 1"),
        ({"rates": ("half",)}, "rates must be numbers"),
        ({"accept": "always"}, "accept must be one of"),
        ({"strategy": "worst"}, "no strategy 'worst'"),
        ({"variants": ("newton",)}, "variants are"),
        ({"measure": "nDCG@x"}, "nDCG@x"),
        ({"settings": SHORT}, "settings must be a PruningSettings, got LineSearch"),
    ],
)
def test_mistakes_are_told_in_one_sentence(parts, model, wrong, words):
    with pytest.raises(rw.RankwoodError, match=words):
        rw.cleaver(model, *parts[:2], **wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rule": "always"}, "accept must be one of 'quality', 'not-significant', 'non-inferior', got 'always'"),
        ({"rule": "non-inferior", "margin": -1.0}, "margin must be a positive number"),
        ({"rule": "quality", "margin": 0.01}, "margin is for accept='non-inferior'"),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
    ],
)
def test_wrong_rules(wrong, words):
    with pytest.raises(rw.RankwoodError, match=words):
        rw.Acceptance(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"victims": "test"}, "victims must be 'train' or 'valid'"),
        ({"max_queries": 0}, "max_queries must be at least 1"),
        ({"search": None}, "search must be a LineSearch, got NoneType"),
        ({"refit": True}, "refit must be a Refit, got bool"),
        ({"distil": SHORT}, "distil must be a Distil, got LineSearch"),
    ],
)
def test_wrong_settings(wrong, words):
    with pytest.raises(rw.RankwoodError, match=words):
        rw.PruningSettings(**wrong)


def test_data_that_does_not_suit_the_model_is_refused_before_the_search(parts, model):
    train, valid, test = parts
    narrow = rw.Dataset(test.X[:, :3], test.y, qid=test.qid)
    told = []
    for data in ({"test": narrow}, {"judge": narrow}):
        with pytest.raises(rw.RankwoodError, match="3 features"):
            rw.cleaver(model, train, valid, **data, progress=lambda done, total: told.append(done))
    assert told == []


def test_wrong_objects(parts, model):
    train, valid, _ = parts
    with pytest.raises(rw.DataError, match="valid must be a Dataset"):
        rw.cleaver(model, train, valid.X)
    with pytest.raises(rw.ModelError, match="an Ensemble or a fitted ranker, got dict"):
        rw.cleaver({}, train, valid)
    with pytest.raises(rw.ModelError, match="has no trees"):
        rw.cleaver(model.select([]), train, valid)
    with pytest.raises(rw.ModelError, match="could overflow"):
        rw.cleaver(model.reweigh(np.full(16, 1e305)), train, valid)
    with pytest.raises(rw.DataError, match=r"validation data: .*no documents"):
        rw.cleaver(model, train, valid.select_queries([]))


def test_victims_are_chosen_by_the_data_asked_for(parts, model):
    train, valid, _ = parts
    seen = []

    def watch(outputs, weights, queries, k):
        seen.append(outputs.n_docs)
        return np.arange(outputs.n_trees - k)

    for victims in ("train", "valid"):
        rw.cleaver(model, train, valid, strategy=watch, rates=(0.5,), settings=replace(TIMED, victims=victims))
    assert seen == [train.n_docs, valid.n_docs]


def test_pruner_scores_as_its_ensemble(parts, model):
    train, valid, _ = parts
    bound = [Evaluator(data, by_query=True) for data in (train, valid)]
    pruner = Pruner.of(model, *bound, Chooser("last", 9), TIMED)
    for pruned in pruner.prune(9, ("line-search", "gradient", "refit", "distil")):
        outputs = pruner.valid.outputs.with_values(pruned.values)
        assert outputs.scores(pruned.weights).tolist() == pruner.ensemble(pruned).score(valid.X).tolist()


@pytest.mark.parametrize("measure", ["nDCG(gains=(0, 5, 1, 2, 3))@5", "ERR", "RBP(p=0.5)", "nDCG(dcg='log2')@10"])
def test_refit_and_gradient_for_other_measures(parts, model, measure):
    train, valid, _ = parts
    result = rw.cleaver(model, train, valid, measure=measure, rates=(0.5,),
                        variants=("line-search", "gradient", "refit"), accept="quality",
                        settings=replace(QUICK, search=rw.LineSearch(iterations=2)))  # fmt: skip
    assert result.valid_after >= result.valid_before


def test_a_sample_searches_and_all_queries_judge(parts, model):
    train, valid, _ = parts
    before = rw.evaluate(model, valid)["nDCG@10"]
    for seed in range(4):
        settings = replace(TIMED, max_queries=5, seed=seed)
        result = rw.cleaver(model, train, valid, rates=(0.5, 0.8), accept="quality", settings=settings)
        assert result.rows[0].valid == pytest.approx(before)
        for row in result.rows:
            assert row.valid == pytest.approx(rw.evaluate(row.ensemble, valid)["nDCG@10"])
        assert rw.evaluate(result.ensemble, valid)["nDCG@10"] >= before


def test_data_that_tells_nothing_is_refused(parts, model):
    train, valid, _ = parts
    flat = rw.Dataset(valid.X, np.zeros(valid.n_docs), qid=valid.qid)
    with pytest.raises(rw.DataError, match="no query of the validation data has documents of different labels"):
        rw.cleaver(model, train, flat)
    with pytest.raises(rw.RankwoodError, match="share of the validation queries to judge by must lie between 0 and 1"):
        rw.cleaver(model, train, valid, judge=5)
