"""The presets give the numbers of the tools they are named after.

Compared only where a tool's answer is unambiguous: where it has no defined order of ties, scores are distinct.
A tool that is not installed is skipped, loudly.
"""

from __future__ import annotations

import os
import shutil
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankwood.evaluation.per_query import mean, per_query


def need(package):
    return pytest.importorskip(package, reason=f"PEER ABSENT: {package} is not installed, nothing was compared with it")


class Sample:
    """Random queries: of 1 to 30 documents, some without relevant ones, with or without ties."""

    def __init__(self, seed, labels="graded", ties=True, n_queries=80, min_docs=1):
        rng = np.random.default_rng(seed)
        self.sizes = rng.integers(min_docs, 31, n_queries)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        n = int(self.offsets[-1])
        if labels == "graded":
            self.y = rng.choice(5, n, p=[0.6, 0.2, 0.1, 0.06, 0.04]).astype(float)
        elif labels == "binary":
            self.y = (rng.random(n) < 0.3).astype(float)
        elif labels == "real":
            self.y = rng.random(n) * 4
        elif labels == "spam":
            self.y = rng.integers(-2, 4, n).astype(float)
        for query in range(0, n_queries, 5):
            self.y[self.offsets[query] : self.offsets[query + 1]] *= 0.0
        self.scores = rng.integers(-3, 4, n) / 2 if ties else rng.permutation(n) / 8.0
        self.doc_ids = np.array([f"d{i}" for i in rng.permutation(n)])

    def rows(self):
        for query, (begin, end) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            yield query, range(begin, end)

    def values(self, measures, **options):
        return per_query(measures, self.y, self.scores, self.offsets, doc_ids=self.doc_ids, **options)

    def qrels(self):
        return {f"q{query}": {self.doc_ids[row]: int(self.y[row]) for row in rows} for query, rows in self.rows()}

    def run(self):
        return {
            f"q{query}": {self.doc_ids[row]: float(self.scores[row]) for row in rows} for query, rows in self.rows()
        }


class TestTrecEval:
    @pytest.mark.parametrize("labels", ["graded", "binary", "spam"])
    @pytest.mark.parametrize("ties", [True, False])
    def test_pytrec_eval(self, labels, ties):
        pytrec_eval = need("pytrec_eval")
        sample = Sample(1, labels, ties)
        names = {
            "nDCG": "ndcg",
            **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in (1, 3, 10, 50)},
            "AP": "map",
            **{f"AP@{k}": f"map_cut_{k}" for k in (1, 3, 10, 50)},
            "RR": "recip_rank",
            **{f"P@{k}": f"P_{k}" for k in (1, 3, 10, 50)},
            **{f"R@{k}": f"recall_{k}" for k in (1, 3, 10, 50)},
        }
        theirs = pytrec_eval.RelevanceEvaluator(sample.qrels(), set(names.values())).evaluate(sample.run())
        expected = [[theirs[f"q{query}"][name] for query in range(len(sample.sizes))] for name in names.values()]
        assert_allclose(sample.values(list(names), convention="trec"), expected, rtol=1e-12, atol=1e-15)

    def test_relevance_level(self):
        pytrec_eval = need("pytrec_eval")
        sample = Sample(2)
        names = {"AP(rel=2)": "map", "RR(rel=2)": "recip_rank", "P(rel=2)@5": "P_5", "R(rel=2)@5": "recall_5"}
        evaluator = pytrec_eval.RelevanceEvaluator(sample.qrels(), set(names.values()), relevance_level=2)
        theirs = evaluator.evaluate(sample.run())
        expected = [[theirs[f"q{query}"][name] for query in range(len(sample.sizes))] for name in names.values()]
        assert_allclose(sample.values(list(names), convention="trec"), expected, rtol=1e-12)

    def test_scores_are_compared_in_32_bits(self):
        pytrec_eval = need("pytrec_eval")
        sample = Sample(3, ties=False)
        sample.scores = 1.0 + sample.scores * 1e-9
        theirs = pytrec_eval.RelevanceEvaluator(sample.qrels(), {"ndcg"}).evaluate(sample.run())
        expected = [[theirs[f"q{query}"]["ndcg"] for query in range(len(sample.sizes))]]
        assert_allclose(sample.values("nDCG", convention="trec"), expected, rtol=1e-12)

    def test_ids_sort_as_bytes(self):
        pytrec_eval = need("pytrec_eval")
        ids = ["a", "aé", "b", "é", "z", "ﬀ", "\U0001f600", "9", "10", "A"]
        y = np.arange(len(ids)) % 3
        theirs = pytrec_eval.RelevanceEvaluator(
            {"q": {i: int(label) for i, label in zip(ids, y, strict=True)}}, {"ndcg"}
        ).evaluate({"q": dict.fromkeys(ids, 1.0)})
        ours = per_query("nDCG", y, np.ones(len(ids)), [0, len(ids)], convention="trec", doc_ids=ids)
        assert ours[0, 0] == pytest.approx(theirs["q"]["ndcg"], rel=1e-12)


class TestIrMeasures:
    def compare(self, sample, measures, **options):
        ir_measures = need("ir_measures")
        qrels = [ir_measures.Qrel(q, doc, label) for q, docs in sample.qrels().items() for doc, label in docs.items()]
        run = [ir_measures.ScoredDoc(q, doc, score) for q, docs in sample.run().items() for doc, score in docs.items()]
        parsed = [ir_measures.parse_measure(measure) for measure in measures]
        number = {measure: i for i, measure in enumerate(parsed)}
        expected = np.zeros((len(measures), len(sample.sizes)))
        for metric in ir_measures.iter_calc(parsed, qrels, run):
            expected[number[metric.measure], int(metric.query_id[1:])] = metric.value
        assert_allclose(sample.values(measures, convention="trec"), expected, **options)

    def test_same_notation(self):
        measures = [
            "nDCG",
            "nDCG@10",
            "AP",
            "AP@5",
            "AP(rel=2)",
            "RR",
            "P@5",
            "P(rel=2)@3",
            "R@10",
            "nDCG(dcg='log2')@3",
        ]
        self.compare(Sample(4), measures, rtol=1e-12)

    def test_gain_table(self):
        self.compare(Sample(5), ["nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7, 4: 15})@10"], rtol=1e-12)

    def test_reciprocal_rank_with_a_cutoff(self):
        self.compare(Sample(6, ties=False), ["RR@3"], rtol=1e-12)

    def test_gdeval(self):
        """The TREC Web track's script prints five digits. It wants numbers as query ids."""
        ir_measures = need("ir_measures")
        if shutil.which("perl") is None:
            pytest.skip("PEER ABSENT: perl is not installed, nothing was compared with gdeval.pl")
        sample = Sample(7)
        gdeval = ir_measures.providers.registry["gdeval"]
        qrels = [ir_measures.Qrel(q[1:], d, label) for q, docs in sample.qrels().items() for d, label in docs.items()]
        run = [ir_measures.ScoredDoc(q[1:], d, score) for q, docs in sample.run().items() for d, score in docs.items()]
        for measure in ("ERR@20", "ERR@3", "nDCG(dcg='exp-log2')@5"):
            expected = np.zeros((1, len(sample.sizes)))
            for metric in gdeval.iter_calc([ir_measures.parse_measure(measure)], qrels, run):
                expected[0, int(metric.query_id)] = metric.value
            assert expected.any()
            assert_allclose(sample.values(measure, convention="trec"), expected, atol=5.1e-6, rtol=0)


class TestScikitLearn:
    """ndcg_score takes one matrix row per query, and raises on a single document."""

    @pytest.mark.parametrize("labels", ["graded", "real"])
    @pytest.mark.parametrize("k", [None, 1, 5, 40])
    def test_ties_averaged(self, labels, k):
        metrics = need("sklearn.metrics")
        sample = Sample(8, labels, min_docs=2)
        cut = "" if k is None else f"@{k}"
        ndcg, dcg = sample.values([f"nDCG{cut}", f"DCG{cut}"], convention="sklearn")
        for query, rows in sample.rows():
            y, scores = sample.y[None, rows], sample.scores[None, rows]
            assert ndcg[query] == pytest.approx(metrics.ndcg_score(y, scores, k=k), rel=1e-12)
            assert dcg[query] == pytest.approx(metrics.dcg_score(y, scores, k=k), rel=1e-12)

    def test_ties_ignored(self):
        metrics = need("sklearn.metrics")
        sample = Sample(9, "real", ties=False, min_docs=2)
        (ndcg,) = sample.values("nDCG(dcg='log2')@5")
        for query, rows in sample.rows():
            theirs = metrics.ndcg_score(sample.y[None, rows], sample.scores[None, rows], k=5, ignore_ties=True)
            assert ndcg[query] == pytest.approx(theirs, rel=1e-12)

    def test_average_precision(self):
        metrics = need("sklearn.metrics")
        sample = Sample(10, "binary", ties=False)
        (ap,) = sample.values("AP", convention="sklearn")
        for query, rows in sample.rows():
            if sample.y[rows].any():
                theirs = metrics.average_precision_score(sample.y[rows], sample.scores[rows])
                assert ap[query] == pytest.approx(theirs, rel=1e-12)


class TestLightGBM:
    """A booster without trees predicts its initial scores, so its metrics are those of the scores."""

    def evaluate(self, sample, metrics, cutoffs, **parameters):
        lightgbm = need("lightgbm")
        parameters |= {"objective": "none", "metric": metrics, "eval_at": cutoffs, "verbosity": -1, "num_threads": 1}
        data = lightgbm.Dataset(
            np.arange(len(sample.y), dtype=float)[:, None],
            label=sample.y,
            group=sample.sizes,
            init_score=sample.scores,
            params={"verbosity": -1, "min_data_in_bin": 1, "min_data_in_leaf": 1},
        )
        return {name: value for _, name, value, _ in lightgbm.Booster(parameters, data).eval_train()}

    @pytest.mark.parametrize("labels", ["graded", "binary"])
    @pytest.mark.parametrize("ties", [True, False])
    def test_ndcg_and_map(self, labels, ties):
        sample = Sample(11, labels, ties)
        cutoffs = [1, 3, 5, 10, 50]
        theirs = self.evaluate(sample, ["ndcg", "map"], cutoffs)
        names = [f"{metric}@{k}" for metric in ("ndcg", "map") for k in cutoffs]
        ours = mean(sample.values(names, convention="lightgbm"))
        assert_allclose(ours, [theirs[name] for name in names], rtol=1e-12)

    def test_queries_without_documents(self):
        sample = Sample(12, n_queries=20)
        sample.sizes = np.insert(sample.sizes, 7, 0)
        sample.offsets = np.concatenate([[0], np.cumsum(sample.sizes)])
        theirs = self.evaluate(sample, ["ndcg", "map"], [5])
        ours = mean(sample.values(["ndcg@5", "map@5"], convention="lightgbm"))
        assert_allclose(ours, [theirs["ndcg@5"], theirs["map@5"]], rtol=1e-12)

    def test_label_gain(self):
        sample = Sample(13)
        theirs = self.evaluate(sample, ["ndcg"], [10], label_gain=[0, 1, 5, 6, 100])
        ours = mean(sample.values("nDCG(gains=(0, 1, 5, 6, 100))@10", convention="lightgbm")[0])
        assert ours == pytest.approx(theirs["ndcg@10"], rel=1e-12)

    def test_map_counts_labels_above_one_half(self):
        sample = Sample(14, "real")
        sample.y = np.round(sample.y / 4, 1)  # 0.5 among them
        theirs = self.evaluate(sample, ["map"], [3, 10])
        ours = mean(sample.values(["map@3", "map@10"], convention="lightgbm"))
        assert_allclose(ours, [theirs["map@3"], theirs["map@10"]], rtol=1e-12)


class TestXGBoost:
    """A booster without trees predicts its base margin."""

    def evaluate(self, sample, metrics, **parameters):
        xgboost = need("xgboost")
        data = xgboost.DMatrix(np.zeros((len(sample.y), 1), dtype=np.float32), label=sample.y, group=sample.sizes)
        data.set_base_margin(sample.scores.astype(np.float32))
        parameters |= {"objective": "rank:ndcg", "eval_metric": metrics, "nthread": 1}
        text = xgboost.Booster(parameters, [data]).eval(data, "x")
        return [float(part.rsplit(":", 1)[1]) for part in text.split("\t")[1:]]

    @pytest.mark.parametrize("ties", [True, False])
    def test_ndcg(self, ties):
        sample = Sample(15, "graded", ties)
        names = ["ndcg", "ndcg-", *(f"ndcg@{k}{minus}" for k in (1, 3, 10, 50) for minus in ("", "-"))]
        ours = mean(sample.values(names, convention="xgboost"))
        assert_allclose(ours, self.evaluate(sample, names), rtol=1e-12)

    @pytest.mark.parametrize("ties", [True, False])
    def test_map_and_precision(self, ties):
        sample = Sample(16, "binary", ties)
        names = ["map", "map-", *(f"map@{k}{minus}" for k in (1, 3, 10, 50) for minus in ("", "-"))]
        ours = mean(sample.values(names, convention="xgboost"))
        assert_allclose(ours, self.evaluate(sample, names), rtol=1e-12)
        names = [f"pre@{k}" for k in (1, 3, 10, 50)]
        ours = mean(sample.values(names, convention="xgboost"))
        assert_allclose(ours, self.evaluate(sample, names), rtol=1e-12)

    def test_linear_gain(self):
        sample = Sample(17, "graded")
        theirs = self.evaluate(sample, ["ndcg@5"], ndcg_exp_gain=False)
        ours = mean(sample.values("nDCG(dcg='log2')@5", convention="xgboost"))
        assert_allclose(ours, theirs, rtol=1e-12)

    def test_scores_are_compared_in_32_bits(self):
        sample = Sample(18, "graded", ties=False)
        sample.scores = 1.0 + sample.scores * 1e-9
        ours = mean(sample.values("ndcg@5", convention="xgboost"))
        assert_allclose(ours, self.evaluate(sample, ["ndcg@5"]), rtol=1e-12)


def test_ranx():
    if not os.environ.get("RANKWOOD_TEST_RANX"):
        pytest.skip(
            "PEER LEFT OUT: ranx compiles itself for a minute first; set RANKWOOD_TEST_RANX=1 to compare with it"
        )
    ranx = need("ranx")
    sample = Sample(19, "graded", ties=False)
    names = {
        "nDCG(dcg='log2')@10": "ndcg@10",
        "nDCG(dcg='exp-log2')@10": "ndcg_burges@10",
        "AP": "map",
        "RR": "mrr",
        "P@5": "precision@5",
        "R@5": "recall@5",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = ranx.evaluate(
            ranx.Qrels(sample.qrels()), ranx.Run(sample.run()), list(names.values()), return_mean=False
        )
    queries = sorted(sample.qrels())  # ranx sorts the query ids
    order = [int(query[1:]) for query in queries]
    ours = sample.values(list(names))[:, order]
    for number, name in enumerate(names.values()):
        assert_allclose(ours[number], theirs[name], rtol=1e-9, atol=1e-12, err_msg=name)
