"""Parameters that cannot be meant are refused in fit, with a sentence that names them; and how text is read as one."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw
from rankwood.evaluation.conventions import Convention
from rankwood.training.params import read_parameter

WRONG = [
    ("n_trees", "10", "n_trees must be a whole number, got '10'"),
    ("n_trees", 10.0, "n_trees must be a whole number, got 10.0"),
    ("n_trees", True, "n_trees must be a whole number, got True"),
    ("n_trees", None, "n_trees must be a whole number, got None"),
    ("n_trees", 0, "n_trees must be at least 1, got 0"),
    ("n_leaves", 0, "n_leaves must lie between 1 and 65536, got 0"),
    ("n_leaves", [8], r"n_leaves must be a whole number, got \[8\]"),
    ("learning_rate", 0.0, "learning_rate must be above 0, got 0.0"),
    ("learning_rate", "fast", "learning_rate must be a number, got 'fast'"),
    ("learning_rate", float("nan"), "learning_rate must be a number, got nan"),
    ("learning_rate", float("inf"), "learning_rate must be above 0, got inf"),
    ("learning_rate_schedule", "falling", "learning_rate_schedule must be 'constant' or 'adaptive', got 'falling'"),
    ("schedule_rate", -1, "schedule_rate must be a number from 0 up, got -1"),
    ("depth_relaxation", 1.5, "depth_relaxation must lie between 0 and 1, got 1.5"),
    ("balance", -0.1, "balance must lie between 0 and 1, got -0.1"),
    ("max_depth", "deep", "max_depth must be a whole number or None, got 'deep'"),
    ("max_depth", -1, "max_depth must be at least 0, or None for no limit, got -1"),
    ("min_docs_per_leaf", 0, "min_docs_per_leaf must be above 0, got 0"),
    ("min_docs_per_leaf", 2.5, "min_docs_per_leaf must be a whole number, or a fraction below 1, got 2.5"),
    ("min_docs_per_leaf", float("inf"), "min_docs_per_leaf must be a whole number, or a fraction below 1, got inf"),
    ("min_gain", -1.0, "min_gain must be a number of at least 0, got -1.0"),
    ("l2", "much", "l2 must be a number, got 'much'"),
    ("gain", "entropy", "gain must be 'newton' or 'variance', got 'entropy'"),
    ("truncation", 0, "truncation must be a rank from 1 on, got 0"),
    ("truncation", 2.5, "truncation must be a whole number or None, got 2.5"),
    ("sigma", 0, "sigma must lie between 1e-6 and 1e6, got 0"),
    ("normalize", "yes", "normalize must be True or False, got 'yes'"),
    ("gains", "quadratic", r"gains must be a sequence, each entry a number, 'linear' or None, got 'quadratic'"),
    ("gains", [0, "1"], "gains must be a sequence"),
    ("gains", [3, 1], "a gain table needs finite gains from 0 upwards that never fall"),
    ("cut_discounts", 1, "cut_discounts must be True or False, got 1"),
    ("loss", "hinge", "loss must be 'lambdamart', 'pairwise', 'xendcg' or 'stochastic', got 'hinge'"),
    ("loss", "rank_xendcg", r"got 'rank_xendcg' \(did you mean 'xendcg'\?\)$"),
    ("loss_measure", "AP", r"got 'AP' \(did you mean 'MAP'\?\)$"),
    ("loss_measure", "ndcg", r"got 'ndcg' \(did you mean 'nDCG'\?\)$"),
    ("loss_measure", "P", "loss_measure must be 'nDCG', 'MAP', 'MRR' or 'ERR', got 'P'"),
    ("permutations", 1.5, "permutations must be a whole number, got 1.5"),
    ("noise", "loud", "noise must be a number, got 'loud'"),
    ("position_l2", -1.0, "position_l2 must be a number of at least 0, got -1.0"),
    ("doc_fraction", 1.5, "doc_fraction must lie above 0 and be at most 1, got 1.5"),
    ("query_fraction", 0.0, "query_fraction must lie above 0 and be at most 1, got 0.0"),
    ("feature_fraction", 2, "feature_fraction must lie above 0 and be at most 1, got 2"),
    ("feature_sampling", "node", "feature_sampling must be 'tree' or 'split', got 'node'"),
    ("missing", "last", "missing must be 'native', 'zero', 'infinity', 'mean' or 'median', got 'last'"),
    ("max_bins", 256, "max_bins must lie between 2 and 255, got 256"),
    ("monotone_constraints", [1], "monotone_constraints has 1 entries"),
    ("interaction_constraints", [[99]], "interaction_constraints has feature 99"),
    ("max_features_used", 0, "max_features_used must be at least 1"),
    ("feature_costs", {0: -1.0}, "feature_costs must be numbers of at least 0"),
    ("categorical_features", [99], "categorical_features has feature 99"),
    ("category_smoothing", "much", "category_smoothing must be a number, got 'much'"),
    ("category_l2", "much", "category_l2 must be a number, got 'much'"),
    ("measure", "nDGC", "unknown measure 'nDGC'"),
    ("measure", 10, "measure must be a text, a Measure or a sequence, each entry a text or a Measure, got 10"),
    ("measure", [], "measure must be a text"),
    ("convention", "martian", "unknown convention 'martian'"),
    ("early_stopping_rounds", 0, "stopping_rounds must be a whole number from 1 up, got 0"),
    ("early_stopping_rounds", 1.5, "early_stopping_rounds must be a whole number or None, got 1.5"),
    ("early_stopping_rounds", 5, "early stopping needs validation data other than the training data"),
    ("objective", "mse", "objective must be a function or None, got 'mse'"),
    ("corrective", -1, "a correction needs trees between"),
    ("corrective", True, "corrective must be a whole number, a Corrective or None, got True"),
    ("corrective", 2.5, "corrective must be a whole number, a Corrective or None, got 2.5"),
    ("refit", 3, "refit must be True or False or a Refit, got 3"),
    ("refit", True, "refit chooses its number of passes on validation data, of which there is none"),
    ("importance_type", "cover", "importance_type must be 'gain' or 'split', got 'cover'"),
    ("on_interrupt", "ignore", "on_interrupt must be 'raise' or 'keep', got 'ignore'"),
    ("random_state", -1, "random_state must not be negative, got -1"),
    ("random_state", "luck", "luck"),
    ("n_jobs", 0, "n_threads must be at least 1, got 0"),
    ("n_jobs", "all", "n_jobs must be a whole number or None, got 'all'"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG, ids=[f"{name}={value!r}" for name, value, _ in WRONG])
def test_wrong_parameters_are_refused_in_fit(data, name, value, message):
    ranker = rw.LambdaMART(**{name: value})  # never before
    with pytest.raises(ValueError, match=message) as caught:
        ranker.fit(data)
    assert "\n" not in str(caught.value)
    assert not hasattr(ranker, "ensemble_")


def test_every_parameter_can_be_wrong():
    assert {name for name, _, _ in WRONG} | {"min_hessian"} == set(rw.LambdaMART().get_params())


@pytest.mark.native
def test_numbers_of_numpy_are_numbers(data):
    given = {
        "n_trees": np.int64(3),
        "learning_rate": np.float32(0.5),
        "l2": 1,
        "max_depth": np.uint8(4),
        "normalize": np.bool_(True),
        "gains": np.array([0.0, 1.0, 3.0, 7.0, 15.0]),
        "convention": Convention("mine", empty=1),
        "measure": [rw.parse_measure("AP@7")],
        "n_jobs": -1,
    }
    ranker = rw.LambdaMART(**given).fit(data)
    assert ranker.ensemble_.metadata["parameters"]["convention"] == "mine"
    assert ranker.ensemble_.metadata["parameters"]["measure"] == ["AP@7"]
    assert ranker.ensemble_ == rw.LambdaMART(3, learning_rate=0.5, l2=1, max_depth=4).fit(data).ensemble_


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n_trees=10", 10),
        (" n_trees = 10 ", 10),
        ("learning_rate=1e-2", 0.01),
        ("min_docs_per_leaf=20", 20),
        ("min_docs_per_leaf=0.01", 0.01),
        ("max_depth=6", 6),
        ("max_depth=None", None),
        ("normalize=false", False),
        ("gain=variance", "variance"),
        ("gains=linear", "linear"),
        ("gains=0,1,3", (0, 1, 3)),
        ("gains=none", None),
        ("convention=lightgbm", "lightgbm"),
        ("measure=nDCG(dcg='log2')@10", "nDCG(dcg='log2')@10"),
    ],
)
def test_text_is_read_by_annotation(text, value):
    name, found = read_parameter(rw.LambdaMART, text)
    assert name == text.split("=")[0].strip()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_trees", "a parameter is written name=value, got 'n_trees'"),
        ("n_tree=3", r"LambdaMART has no parameter 'n_tree' \(did you mean n_trees\?\): it has n_trees, "),
        ("leaves=3", r"did you mean n_leaves\?"),
        ("n_trees=ten", "n_trees must be a whole number, got 'ten'"),
        ("n_trees=1.5", "n_trees must be a whole number, got '1.5'"),
        ("max_depth=deep", "max_depth must be a whole number or None, got 'deep'"),
        ("normalize=maybe", "normalize must be True or False, got 'maybe'"),
        ("gain=entropy", "gain must be 'newton' or 'variance', got 'entropy'"),
        ("objective=mse", "objective can be given in Python only, not as text"),
        ("random_state=3", "random_state can be given in Python only, not as text"),
    ],
)
def test_text_that_is_no_parameter(text, message):
    with pytest.raises(rw.RankwoodError, match=message):
        read_parameter(rw.LambdaMART, text)
