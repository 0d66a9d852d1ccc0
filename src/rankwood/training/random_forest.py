"""A random forest as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rankwood.data.bins import MAX_BINS, BinnedDataset, CodedDataset
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluation
from rankwood.evaluation.measures import Measure
from rankwood.training.callbacks import Callback
from rankwood.training.checkpoint import Checkpoint
from rankwood.training.driver import Session, Trained
from rankwood.training.forest import evaluate_scored, grow_forest, out_of_bag_scores
from rankwood.training.full_depth import FullDepthRules, Grower, TaskGrower
from rankwood.training.inputs import EvalSets, Rows, in_bins, routed
from rankwood.training.params import rules_from
from rankwood.training.ranker import GradesMixin, as_list
from rankwood.training.shared_forest import SharedGrower
from rankwood.training.tasks import Ordinal, Regression


@dataclass(eq=False, repr=False, kw_only=True)
class RandomForest(GradesMixin):
    """A random forest: the mean of trees of full depth, each grown on a sample of its own.

    By default every tree sees as many documents as there are, drawn with replacement (Breiman 2001; Mohan et al. 2011,
    algorithm 1). With `queries_per_tree` it sees whole queries (Ibrahim & Carman 2014): few of them make the trees
    less alike, the forest often better, and training faster by as much as the sample is smaller.

    Parameters
    ----------
    n_trees : int, default 1000
        Number of trees.
    criterion : {"variance", "entropy"}, default "variance"
        What splits lower: the variance of the labels, or the entropy over labels as classes. The value of a leaf is
        the mean label.
    max_features : int, float, "sqrt", "ceil-sqrt" or None, default "sqrt"
        Features drawn at each node: a count, a fraction, the square root of their number, rounded down or up, or all.
        The type tells count and fraction apart: 1 is one feature, 1.0 all of them. As long as all that were drawn are
        constant in the node, more are drawn.
    redraw : bool, default False
        Whether more features are drawn as long as no split of those drawn gains: a node is a leaf only when no split
        of any feature gains (Ibrahim & Carman, section 6.1).
    thresholds : {"best", "random"}, default "best"
        Which thresholds of a drawn feature are tried: all; or one, drawn evenly between its smallest and its largest
        value in the node, as in extremely randomised trees (Geurts et al. 2006; Geurts & Louppe 2011).
    queries_per_tree : int, float or None, default None
        Whole queries that a tree is grown on: a count, or a fraction of all. None draws documents.
    docs_per_tree : int, float or None, default None
        Documents that a tree is grown on, when no queries are drawn: a count, or a fraction of all. None draws as
        many as there are.
    docs_per_query : int, float or None, default None
        Documents of every query that a tree is grown on, instead: a count, or a fraction of its own; without
        replacement unless told otherwise.
    replace : bool or None, default None
        Whether one may be drawn twice. None: documents yes, queries no.
    max_depth : int or None, default None
        Most splits between the root and a leaf; None sets no limit.
    n_leaves : int or None, default None
        Most leaves of a tree, of which the split that gains most comes next; None sets no limit.
    min_docs_per_leaf : float, default 1
        Fewest documents of a leaf; below 1, a fraction of those that the tree sees.
    min_gain : float, default 0.0
        A split must lower the mean impurity of its documents by more than this.
    max_bins : int or None, default None
        Number of values that a feature is reduced to. None: every value counts when there are up to 65,535 documents,
        and there are 255 bins else. Data that comes in bins keeps its own.
    task : {"regression", "ordinal"}, default "regression"
        What the labels are learnt as: numbers; or grades, the classification setting (Mohan et al., section 6). Then,
        for every grade c above 0, a forest learns whether the label is below c, tree t of each on the same sample, and
        the score is the expected grade. The model has `n_trees` trees per grade.
    missing : {"native", "zero", "infinity", "mean", "median", "three-way"}, default "native"
        Where missing values go: where they gain most; or where 0, infinity, or the mean or median of the feature in
        the training data goes, as if they had that value in training and in scoring. "three-way": to a side of their
        own, so that splits may have three sides (in the model, two nodes); without `n_leaves`.
    out_of_bag : bool, default False
        Whether the documents of the training data are scored by the trees that have not seen them, and that is
        measured.
    measure : str, Measure or a sequence of these, default "nDCG@10"
        What is watched on validation data. The first is also what `score` returns.
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree.
    importance_type : {"gain", "split"}, default "gain"
        What `feature_importances_` counts.
    on_interrupt : {"raise", "keep"}, default "raise"
        After Ctrl-C raise KeyboardInterrupt, or keep the trees there are and return.
    random_state : int, RandomState or None, default 0
        Seed of all that is drawn at random. A number gives the same model every time.
    n_jobs : int or None, default None
        Number of threads; None or -1 uses every CPU. It never changes the model.

    Attributes
    ----------
    ensemble_ : Ensemble
        The model; the weight of each of M trees is 1/M.
    best_iteration_ : int
        Number of trees, per grade with task="ordinal".
    best_score_, evals_result_ : dict
        Measures of the model, and after every tree: data set, then measure.
    interrupted_ : bool
        Whether Ctrl-C ended the training.
    oob_scores_ : array of float
        With `out_of_bag`: score of every row of the training data, NaN where every tree saw it.
    oob_evaluation_ : Evaluation or None
        With `out_of_bag` and queries: the measures of these scores. Queries with a NaN are left out.
    oob_score_ : float or None
        The mean of its first measure.
    classes_ : array of int
        The grades, when fitted with task="ordinal"; there is then also `predict_proba`.
    n_features_in_, feature_names_in_
        Features of the training data, as in scikit-learn.
    feature_importances_ : array of float
        Share of every feature in the gains, or in the splits.
    n_trees_, n_estimators_ : int
        Number of trees of the model.

    See Also
    --------
    LambdaMART : Boosted trees that raise NDCG directly.

    Notes
    -----
    On the command line: `rankwood train forest`.

    Examples
    --------
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
    max_features: float | Literal["sqrt", "ceil-sqrt"] | None = "sqrt"
    redraw: bool = False
    thresholds: Literal["best", "random"] = "best"
    queries_per_tree: float | None = None
    docs_per_tree: float | None = None
    docs_per_query: float | None = None
    replace: bool | None = None
    max_depth: int | None = None
    n_leaves: int | None = None
    min_docs_per_leaf: float = 1
    min_gain: float = 0.0
    max_bins: int | None = None
    task: Literal["regression", "ordinal"] = "regression"
    missing: Literal["native", "zero", "infinity", "mean", "median", "three-way"] = "native"
    out_of_bag: bool = False
    measure: str | Measure | Sequence[str | Measure] = "nDCG@10"
    convention: str | Convention = "rankwood"
    importance_type: Literal["gain", "split"] = "gain"
    on_interrupt: Literal["raise", "keep"] = "raise"
    random_state: Any = 0
    n_jobs: int | None = None

    @property
    def _needs_queries(self) -> bool:
        return False

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        valid: Any = None,
        eval_set: Any = None,
        eval_qid: Sequence[Any] | None = None,
        eval_group: Sequence[Any] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        client: Any = None,
        shuffle: bool = False,
    ) -> Any:
        """Grow a forest on a Dataset, or on X and y with the query of every row.

        Queries are needed only to draw them and to measure. Weights count in the means of leaves and in gains; what a
        tree sees is drawn without regard to them.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            The training data, as in `LambdaMART.fit`; files are read into memory.
        valid, eval_set, eval_qid, eval_group, eval_names, eval_metric
            What to measure, and on which data, as in `LambdaMART.fit`.
        callbacks, checkpoint
            As in `LambdaMART.fit`. A forest has no learning rate that `reset_parameter` could change.
        client, shuffle
            As in `LambdaMART.fit`. On a cluster features stay with the workers, four bytes a value.

        Returns
        -------
        self
        """
        p = self._checked()
        p._rules()  # wrong ones are refused before the data is read
        rows = Rows(X, y, qid, group, sample_weight, query_weight)
        sets = EvalSets(valid, eval_set, eval_qid, eval_group, eval_names)
        if client is not None:
            from rankwood.cluster.fit import fit_on

            told = (eval_metric, callbacks, checkpoint)
            return fit_on(client, self, rows, sets, *told, shuffle=shuffle, max_bins=MAX_BINS, grows_forest=True)
        data, missing_as, session = self._begin(rows, sets, eval_metric, callbacks, checkpoint)
        if p.queries_per_tree is not None and not rows.has_queries:
            raise RankwoodError("queries_per_tree draws queries: give qid or group, or draw documents by docs_per_tree")
        threads = session.n_threads
        seen = in_bins(rows, data, MAX_BINS, n_threads=threads) if isinstance(rows.X, BinnedDataset) else data
        grower = p._grower(seen, threads)
        result = grow_forest(grower, session, n_trees=p.n_trees)
        self._note(replace(result, ensemble=routed(result.ensemble, missing_as)), session.seed)
        if p.out_of_bag:
            self._note_out_of_bag(grower, session, has_queries=rows.has_queries)
        return self

    def _with_matrix(self, data: Dataset) -> Dataset:
        return data.in_memory() if data.can_read_features else data  # a share may have come in bins alone

    def _grower(self, data: Dataset | BinnedDataset, n_threads: int) -> Grower:
        """What grows the trees, on a data set or on a share of one."""
        if isinstance(data, Dataset) or data.share.group.size == 1:
            return grower_of(self, data, n_threads=n_threads)
        task = Ordinal.of(data.data.y, data.share.group) if self.task == "ordinal" else Regression()
        return SharedGrower(data, self._rules(), task, n_threads=n_threads)

    def _rules(self) -> FullDepthRules:
        """How each tree is grown."""
        return rules_from(FullDepthRules, self, missing_apart=self.missing == "three-way")

    def _note(self, result: Trained, seed: int) -> None:
        """Set the fitted attributes."""
        if result.ensemble.n_nodes == 0:
            warnings.warn(
                "no tree has a split, so every document gets the same score: are all labels or all rows alike, "
                "are samples too small, or do max_depth, n_leaves, min_docs_per_leaf or min_gain forbid it?",
                stacklevel=3,
            )
        self._set_fitted(result, seed)

    def _note_out_of_bag(self, grower: Grower, session: Session, *, has_queries: bool) -> None:
        """Score the training data out of the bag, and measure it when there are queries."""
        data, share, n_threads = grower.train.data, grower.share, session.n_threads
        self.oob_scores_, counts = out_of_bag_scores(grower, self.ensemble_, seed=session.seed, n_threads=n_threads)
        unseen = share.group.total(int(np.count_nonzero(counts == 0)))
        if unseen:
            warnings.warn(
                f"{unseen} of {share.n_docs} documents were seen by every tree and have no score out of the bag: "
                "grow more trees, or on smaller samples",
                stacklevel=3,
            )
        self.oob_evaluation_: Evaluation | None = None
        self.oob_score_: float | None = None
        if has_queries:
            measures = as_list(self.measure)
            settings = (measures, self.convention)
            found = evaluate_scored(self.oob_scores_, data, *settings, n_threads=n_threads, group=share.group)
            self.oob_evaluation_, self.oob_score_ = found, next(iter(found.means.values()))
        if share.group.size > 1:
            self.oob_scores_ = np.concatenate(share.group.gather(self.oob_scores_))


def grower_of(forest: RandomForest, data: Dataset | BinnedDataset, *, n_threads: int) -> TaskGrower:
    """What grows the trees of a forest, whose parameters are checked, on a data set."""
    coded = CodedDataset.make(data, forest.max_bins, n_threads=n_threads)
    task = Ordinal.of(coded.data.y) if forest.task == "ordinal" else Regression()
    return TaskGrower(coded, forest._rules(), task)
