"""The boosted rankers of the papers, as scikit-learn estimators: a few defaults and a loss each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar, Literal

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.learners.estimator import BoostedRanker
from rankwood.learners.ordinal import GradesMixin
from rankwood.learners.tasks import Ordinal, Regression, Task
from rankwood.learners.updates import Plain, Update
from rankwood.losses import CustomLoss, LambdaLoss, Loss, SquaredLoss


@dataclass(eq=False, repr=False, kw_only=True)
class ScheduledRanker(BoostedRanker):
    """Rankers that only ever add trees, with a weight that may depend on their number. LambdaMART explains it."""

    learning_rate_schedule: Literal["constant", "adaptive"] = "constant"
    schedule_rate: float = 0.015

    def _update(self, p: SimpleNamespace) -> Update:
        return Plain(p.learning_rate, p.learning_rate_schedule, p.schedule_rate)


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaRanker(BoostedRanker):
    """Rankers that learn by LambdaMART's gradients, and the parameters of these. LambdaMART explains them."""

    truncation: int | None = 30
    sigma: float = 1.0
    normalize: bool = True
    gains: Sequence[float] | Literal["linear"] | None = None
    cut_discounts: bool = False

    def _loss(self, p: SimpleNamespace) -> Loss:
        if p.objective is not None:
            return CustomLoss(p.objective)
        return LambdaLoss(
            truncation=p.truncation, sigma=p.sigma, normalize=p.normalize, gains=p.gains, cut_discounts=p.cut_discounts
        )


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaMART(ScheduledRanker, LambdaRanker):
    """LambdaMART: boosted trees that raise NDCG directly (Burges 2010), grown as in Asadi & Lin (2013).

    n_trees, learning_rate     size of the ensemble and weight of each tree
    n_leaves, max_depth, min_docs_per_leaf, min_gain, min_hessian, l2, gain     limits of a tree; see GrowthRules
    learning_rate_schedule     "constant"; or "adaptive": tree i = 0, 1, ... weighs nu / (k + nu), where nu is the
                               learning rate and k = schedule_rate * i. Meant for a learning rate of about 1: the
                               control of Lucchese et al. (2017)
    depth_relaxation, balance  Asadi & Lin's lambda (cost-sensitive growth) and alpha (pruning while boosting)
    truncation, sigma, normalize, gains, cut_discounts    the loss; see LambdaLoss
    query_fraction, feature_fraction    share of the queries and features that a tree may see, drawn anew for each
    feature_sampling           whether features are drawn per "tree" or per "split"
    max_bins                   number of values that a feature is reduced to; data that comes in bins keeps its own
    missing                    where missing values go: "native", learnt for each split; "zero", where 0 goes, as if
                               they were 0 in training and in scoring
    measure, convention        what is watched on validation data; the first measure is also what `score` returns
    early_stopping_rounds      stop when the first measure has not improved for so many trees, and restore the best size
    objective                  a function of your own instead of the learner's loss; see CustomLoss
    importance_type            what `feature_importances_` counts: "gain" or "split"
    on_interrupt               after Ctrl-C "raise" KeyboardInterrupt, or "keep" what was learnt and return
    random_state               a number, for the same model whenever; a RandomState or None as in scikit-learn
    n_jobs                     number of threads; None or -1 uses every CPU. It never changes the model

    Fitted: `ensemble_` (the model), `best_iteration_` (number of boosted trees kept), `best_score_` and
    `evals_result_` (by data set and measure), `n_features_in_`, `feature_names_in_`, `feature_importances_`,
    `n_trees_`, `n_estimators_`, `interrupted_` (whether Ctrl-C ended the training).

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.LambdaMART(n_trees=20, n_leaves=8).fit(train, valid=valid)
    >>> ranker.n_trees_, len(ranker.evals_result_["valid"]["nDCG@10"])
    (20, 20)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class MART(GradesMixin, ScheduledRanker):
    """MART, or GBRT: boosted regression trees on the labels (Mohan et al. 2011, algorithm 2).

    Parameters are those of LambdaMART but for its loss, and

    task      "regression" on the labels; or "ordinal", the classification setting (section 6 of the paper): for every
              grade c above 0 a tree of each round learns whether the label is below c, and the score is the expected
              grade. The model has `n_trees` trees per grade, and stopping early goes by its ranking

    Queries are needed only to measure, and to sample them; without any, every row is a query of its own.
    Fitted with task="ordinal" it also has `classes_`, the grades, and `predict_proba`.

    >>> import rankwood as rw
    >>> ranker = rw.MART(n_trees=5, n_leaves=4, min_docs_per_leaf=1, learning_rate=1.0)
    >>> ranker.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3]).predict([[0.0], [3.0]])
    array([0., 3.])
    >>> _ = ranker.set_params(task="ordinal").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 2])
    >>> ranker.classes_, ranker.predict_proba([[1.0]]), ranker.n_trees_
    (array([0, 1, 2]), array([[0., 1., 0.]]), 10)
    """

    task: Literal["regression", "ordinal"] = "regression"

    _needs_queries: ClassVar[bool] = False

    def _loss(self, p: SimpleNamespace) -> Loss:
        return SquaredLoss() if p.objective is None else CustomLoss(p.objective)

    def _task(self, p: SimpleNamespace, y: FloatArray) -> Task:
        if p.task == "regression":
            return Regression()
        if p.objective is not None:
            raise RankwoodError("task='ordinal' learns probabilities by squared error: leave objective out")
        return Ordinal.of(y)
