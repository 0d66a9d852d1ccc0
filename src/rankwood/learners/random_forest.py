"""Random forests for ranking as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np

from rankwood.data.binning import BinnedDataset
from rankwood.data.coding import CodedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import Evaluation, evaluate
from rankwood.evaluation.measures import Measure
from rankwood.evaluation.per_query import mean
from rankwood.learners.callbacks import Callback, record_evaluation
from rankwood.learners.checkpoint import Checkpoint
from rankwood.learners.forest import Forest, grow_forest
from rankwood.learners.inputs import Rows, evaluation_data, something_to_learn_from
from rankwood.learners.ordinal import GradesMixin
from rankwood.learners.parameters import checked_parameters
from rankwood.learners.ranker import Ranker, as_list, curves_note
from rankwood.learners.task_grower import TaskGrower, out_of_bag_scores
from rankwood.learners.tasks import Ordinal, Regression, Task
from rankwood.learners.watch import Measures
from rankwood.trees.fulldepth import FullDepthRules


@dataclass(eq=False, repr=False, kw_only=True)
class RandomForest(GradesMixin, Ranker):
    """A random forest: the mean of trees of full depth, each grown on a sample of its own.

    Without further ado every tree sees as many documents as there are, drawn with replacement (Breiman 2001; Mohan et
    al. 2011, algorithm 1). With `queries_per_tree` it sees whole queries (Ibrahim & Carman 2014): few of them make the
    trees less alike, the forest often better, and training faster by as much as the sample is smaller.

    n_trees            size of the forest
    criterion          what splits lower: "variance" of the labels, or "entropy" over labels as classes. The value of a
                       leaf is the mean label
    max_features       features drawn at each node: a count, a fraction, "sqrt" of all, or None for all
    queries_per_tree   queries that a tree is grown on, with all their documents: a count, or a fraction of all
    docs_per_tree      documents, when no queries are drawn: a count, or a fraction of all
    replace            whether one may be drawn twice; None: documents yes, queries no
    max_depth, n_leaves, min_docs_per_leaf, min_gain     limits of a tree; see FullDepthRules. There are none by default
    max_bins           number of values that a feature is reduced to. None: every value counts when there are up to
                       65,535 documents, and there are 255 bins else; data that comes in bins keeps its own
    task               "regression" on the labels; or "ordinal", the classification setting (Mohan et al., section 6):
                       for every grade c above 0 a forest learns whether the label is below c, tree t of each on the
                       same sample, and the score is the expected grade. The model has `n_trees` trees per grade
    missing            a missing value goes where it gains most ("native"); or counts as 0 in training and in scoring
                       ("zero"), and the forest is that of data with 0 instead
    out_of_bag         score the documents of the training data by the trees that have not seen them, and measure that
    measure, convention    what is watched on validation data; the first measure is also what `score` returns
    importance_type    what `feature_importances_` counts: "gain" or "split"
    on_interrupt       after Ctrl-C "raise" KeyboardInterrupt, or "keep" the trees there are and return
    random_state       a number, for the same model whenever; a RandomState or None as in scikit-learn
    n_jobs             number of threads; None or -1 uses every CPU. It never changes the model

    Fitted: `ensemble_` (the model: tree weights 1/M), `best_iteration_` (number of trees), `best_score_` and
    `evals_result_` (by data set and measure), `interrupted_`, `n_features_in_`, `feature_names_in_`,
    `feature_importances_`, `n_trees_`. With `out_of_bag` also `oob_scores_` (of every row of the training data, NaN
    where every tree saw it) and, when there are queries, `oob_evaluation_` (an Evaluation; queries with a NaN are left
    out) and `oob_score_` (the mean of its first measure). With task="ordinal" `classes_`, the grades, and
    `predict_proba`.

    >>> import rankwood as rw
    >>> train, test = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.RandomForest(n_trees=50, queries_per_tree=0.2, criterion="entropy", out_of_bag=True).fit(train)
    >>> ranker.n_trees_, ranker.oob_scores_.shape == train.y.shape, ranker.oob_score_ > 0.5
    (50, True, True)
    >>> grades = rw.RandomForest(n_trees=50, queries_per_tree=0.2, task="ordinal").fit(train)
    >>> grades.n_trees_, grades.predict_proba(test).shape == (test.n_docs, len(grades.classes_))
    (200, True)
    """

    n_trees: int = field(default=1000, kw_only=False)
    criterion: Literal["variance", "entropy"] = "variance"
    max_features: float | Literal["sqrt"] | None = "sqrt"
    queries_per_tree: float | None = None
    docs_per_tree: float | None = None
    replace: bool | None = None
    max_depth: int | None = None
    n_leaves: int | None = None
    min_docs_per_leaf: float = 1
    min_gain: float = 0.0
    max_bins: int | None = None
    task: Literal["regression", "ordinal"] = "regression"
    missing: Literal["native", "zero"] = "native"
    out_of_bag: bool = False
    measure: str | Measure | Sequence[str | Measure] = "nDCG@10"
    convention: str | Convention = "rankwood"
    importance_type: Literal["gain", "split"] = "gain"
    on_interrupt: Literal["raise", "keep"] = "raise"
    random_state: Any = 0
    n_jobs: int | None = None

    _needs_queries: ClassVar[bool] = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        valid: Dataset | BinnedDataset | None = None,
        eval_set: Any = None,
        eval_qid: Sequence[Any] | None = None,
        eval_group: Sequence[Any] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Any:
        """Grow a forest on a Dataset, or on X and y with the query of every row. Arguments are those of LambdaMART.fit.

        Queries are needed only to draw them and to measure. Weights count in the means of leaves and in gains; what a
        tree sees is drawn without regard to them.
        """
        p = checked_parameters(self)
        if p.n_trees < 1:
            raise RankwoodError(f"n_trees must be at least 1, got {p.n_trees}")
        rules, seed, n_threads = rules_of(p), self._seed(), self._n_threads()
        measures = Measures(as_list(p.measure if eval_metric is None else eval_metric), p.convention).measures
        checkpoint = self._checkpoint(checkpoint)
        rows = Rows(X, y, qid, group, sample_weight, query_weight)
        train = self._training_data(rows, p, n_threads)
        if p.queries_per_tree is not None and not rows.has_queries:
            raise RankwoodError("queries_per_tree draws queries: give qid or group, or draw documents by docs_per_tree")
        self._fitted_on_dataset = rows.is_dataset
        watched = evaluation_data(self, train, rows, valid, eval_set, eval_qid, eval_group, eval_names)
        grower = TaskGrower(train, rules, task_of(p, train.data.y))
        history: dict[str, dict[str, list[float]]] = {}
        result = grow_forest(
            grower,
            n_trees=p.n_trees,
            valid={name: one.data if isinstance(one, BinnedDataset) else one for name, one in watched.items()},
            measures=measures,
            convention=p.convention,
            callbacks=[*(callbacks or []), record_evaluation(history)],
            checkpoint=checkpoint,
            on_interrupt=p.on_interrupt,
            seed=seed,
            n_threads=n_threads,
        )
        self._note(result, seed, history)
        if p.out_of_bag:
            self._note_out_of_bag(grower, rows, p, seed, n_threads)
        return self

    def _training_data(self, rows: Rows, p: SimpleNamespace, n_threads: int) -> CodedDataset:
        data = something_to_learn_from(self, rows)
        given = rows.X if isinstance(rows.X, BinnedDataset) else data
        return CodedDataset.make(given, p.max_bins, missing_as_zero=p.missing == "zero", n_threads=n_threads)

    def _note(self, result: Forest, seed: int, history: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        if result.ensemble.n_nodes == 0:
            warnings.warn(
                "no tree has a split, so every document gets the same score: are all labels or all rows alike, "
                "are samples too small, or do max_depth, n_leaves, min_docs_per_leaf or min_gain forbid it?",
                stacklevel=3,
            )
        self.ensemble_ = result.ensemble.with_metadata(**self._notes(seed), **curves_note(history))
        self.best_iteration_ = result.best_iteration
        self.best_score_ = result.best_score
        self.evals_result_ = history
        self.interrupted_ = result.interrupted

    def _note_out_of_bag(self, grower: TaskGrower, rows: Rows, p: SimpleNamespace, seed: int, n_threads: int) -> None:
        data = grower.train.data
        self.oob_scores_, counts = out_of_bag_scores(grower, self.ensemble_, seed=seed, n_threads=n_threads)
        unseen = int(np.count_nonzero(counts == 0))
        if unseen:
            warnings.warn(
                f"{unseen} of {data.n_docs} documents were seen by every tree and have no score out of the bag: "
                "grow more trees, or on smaller samples",
                stacklevel=3,
            )
        self.oob_evaluation_ = self.oob_score_ = None
        if rows.has_queries:
            self.oob_evaluation_ = evaluate_scored(
                self.oob_scores_, data, as_list(p.measure), p.convention, n_threads=n_threads
            )
            self.oob_score_ = next(iter(self.oob_evaluation_.means.values()))


def evaluate_scored(
    scores: FloatArray,
    data: Dataset,
    measures: Sequence[str | Measure],
    convention: str | Convention = "rankwood",
    *,
    n_threads: int | None = None,
) -> Evaluation:
    """Measure the queries all of whose documents have a score; the others have NaN, and are left out of the means."""
    index = data.queries.index
    complete = np.bincount(index, weights=np.isnan(scores), minlength=data.n_queries) == 0
    # Documents without a score are given one, so that nothing is in their way; their queries do not count.
    result = evaluate(np.nan_to_num(scores), data, measures, convention=convention, n_threads=n_threads)
    values = {name: np.where(complete, row, np.nan) for name, row in result.per_query.items()}
    means = {name: mean(row, data.query_weights) for name, row in values.items()}
    return Evaluation(result.convention, means, values, data.query_weights)


def task_of(p: SimpleNamespace, y: FloatArray) -> Task:
    """The task of checked parameters, for these labels."""
    return Ordinal.of(y) if p.task == "ordinal" else Regression()


def rules_of(p: SimpleNamespace) -> FullDepthRules:
    """How trees are made, by checked parameters."""
    return FullDepthRules(
        criterion=p.criterion,
        max_features=p.max_features,
        queries_per_tree=p.queries_per_tree,
        docs_per_tree=p.docs_per_tree,
        replace=p.replace,
        max_depth=p.max_depth,
        n_leaves=p.n_leaves,
        min_docs_per_leaf=p.min_docs_per_leaf,
        min_gain=p.min_gain,
    )
