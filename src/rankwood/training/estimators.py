"""The rankers as scikit-learn estimators: LambdaMART, MART, DART, X-DART, random forests, iGBRT."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from rankwood.coding import Coding
from rankwood.data.bins import MAX_BINS, BinnedDataset, CodedDataset, coded_exactly
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluation
from rankwood.evaluation.measures import Measure
from rankwood.fitting.refit import Refit
from rankwood.group import Group
from rankwood.model.constraints import Constraints
from rankwood.model.ensemble import Ensemble
from rankwood.training.boosting import Boosted, Extent, boost
from rankwood.training.callbacks import Callback, Step
from rankwood.training.checkpoint import Checkpoint, identify
from rankwood.training.constraints import numbers_of, resolve
from rankwood.training.correction import Corrective
from rankwood.training.driver import Session, Trained
from rankwood.training.forest import evaluate_scored, grow_forest, out_of_bag_scores
from rankwood.training.full_depth import FullDepthRules, Grower, TaskGrower
from rankwood.training.grow import Categories, GrowthRules, Sampling, TreeRules
from rankwood.training.inputs import (
    EvalSets,
    Rows,
    filled,
    frame_coding,
    in_bins,
    in_codes,
    replacements,
    routed,
)
from rankwood.training.losses import (
    CrossEntropyLoss,
    CustomLoss,
    LambdaLoss,
    Loss,
    LossMeasure,
    PairwiseLoss,
    SquaredLoss,
    StochasticLoss,
)
from rankwood.training.params import rules_from
from rankwood.training.ranker import GradesMixin, Ranker, as_list
from rankwood.training.refitting import Refitting
from rankwood.training.shared_forest import SharedGrower
from rankwood.training.tasks import NOTE, Ordinal, Regression, Task
from rankwood.training.updates import Dart, Plain, Update, XDart


# A dataclass writes the __init__ that scikit-learn wants: explicit, and doing nothing but assignments.
@dataclass(eq=False, repr=False, kw_only=True)
class BoostedRanker(Ranker):
    """Base of the boosted rankers; a subclass adds parameters of its own and says which loss they mean.

    LambdaMART's docstring explains the parameters and fitted attributes. Methods that say what parameters mean are
    called on a copy whose parameters are checked (see `Ranker._checked`).
    """

    n_trees: int = field(default=300, kw_only=False)
    n_leaves: int = field(default=64, kw_only=False)
    learning_rate: float = field(default=0.05, kw_only=False)
    depth_relaxation: float = 0.0
    balance: float = 0.0
    max_depth: int | None = None
    min_docs_per_leaf: float = 20
    min_gain: float = 0.0
    min_hessian: float = 1e-3
    l2: float = 0.0
    gain: Literal["newton", "variance"] = "newton"
    query_fraction: float = 1.0
    doc_fraction: float = 1.0
    feature_fraction: float = 1.0
    feature_sampling: Literal["tree", "split"] = "tree"
    monotone_constraints: Sequence[int] | Mapping[Any, int] | None = None
    interaction_constraints: Sequence[Sequence[int | str]] | None = None
    max_features_used: int | None = None
    feature_costs: Sequence[float] | Mapping[Any, float] | None = None
    categorical_features: Sequence[int | str] | None = None
    category_smoothing: float = 10.0
    category_l2: float = 10.0
    max_bins: int = MAX_BINS
    missing: Literal["native", "zero", "infinity", "mean", "median"] = "native"
    measure: str | Measure | Sequence[str | Measure] = "nDCG@10"
    convention: str | Convention = "rankwood"
    early_stopping_rounds: int | None = None
    objective: Callable[..., Any] | None = None
    position_l2: float = 0.0
    corrective: int | Corrective | None = None
    refit: bool | Refit = False
    importance_type: Literal["gain", "split"] = "gain"
    on_interrupt: Literal["raise", "keep"] = "raise"
    random_state: Any = 0
    n_jobs: int | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        position: Any = None,
        valid: Any = None,
        eval_set: Any = None,
        eval_qid: Sequence[Any] | None = None,
        eval_group: Sequence[Any] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        init_model: Any = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        client: Any = None,
        shuffle: bool = False,
    ) -> Any:
        """Train on a Dataset, or on X and y with the query of every row.

        Parameters
        ----------
        X : Dataset, BinnedDataset, path or list of paths, Arrow table, DataFrame or matrix
            A Dataset (or BinnedDataset) alone; files as `read_data` takes them, which may be larger than memory, or a
            table (anything with the Arrow PyCapsule interface) with columns `label` and `qid`; or features, to which
            labels and queries are given separately.
        y : array, optional
            Label of every row.
        qid, group : array, optional
            Query id of every row, in any order; or sizes of consecutive queries. A DataFrame may have a column `qid`
            instead.
        sample_weight, query_weight : array, optional
            Weight of every document; weight of every query, in order of first appearance.
        position : array, optional
            Place, from 0 on, at which every document was shown when its label came about, if labels come of clicks. How
            much of the labels is due to that is learnt beside the trees, which need not explain it; `position_biases_`
            has what was found.
        valid : Dataset, BinnedDataset, path or list of paths, or table, or a list or dict of these, optional
            Data to measure on, named "valid"; those of a list are "valid_0", "valid_1", ..., those of a dict have their
            names. Early stopping goes by the first.
        eval_set : list of (X, y), of Datasets or of paths, optional
            More data to measure on. The training data may be one; it is measured too, but early stopping does not go
            by it.
        eval_qid, eval_group, eval_names : list, optional
            Queries of every pair of `eval_set`, in either form, and the names to measure under.
        eval_metric : str, Measure, callable or a list of these, optional
            Measures to watch instead of the parameter `measure`. A function takes labels, scores and the offsets of
            queries, and returns a value, or (name, value, whether higher is better).
        callbacks : list of callables, optional
            See `early_stopping`, `log_evaluation`, `record_evaluation` and `reset_parameter` of rankwood.
        init_model : Ensemble or fitted ranker, optional
            A model to go on from; its trees stay as they are.
        checkpoint : Checkpoint or path, optional
            File to save the training to now and then, and to resume it from.
        client : distributed.Client, optional
            Train on the workers of this Dask cluster. The model is the same, bit for bit. Data may then also be a Dask
            DataFrame, a Dask array with `y` and `qid`, or a list of delayed partitions; see the guide on clusters.
        shuffle : bool, default False
            Whether rows of a query may stand apart in the data of a cluster; they are moved together, which sends all
            data over the network once.

        Returns
        -------
        self
        """
        p = self._checked()
        if client is not None:
            if p.refit is not False:
                raise RankwoodError("refit needs the features on one machine: use rankwood.refit afterwards")
            if p.categorical_features is not None:
                raise RankwoodError("categorical_features cannot be had on a cluster yet: train on one machine")
            if position is not None:
                raise RankwoodError("on a cluster positions come with a Dataset: give Dataset(X, y, position=...)")
            return fit_on(
                client,
                self,
                Rows(X, y, qid, group, sample_weight, query_weight),
                EvalSets(valid, eval_set, eval_qid, eval_group, eval_names),
                eval_metric,
                callbacks,
                checkpoint,
                shuffle=shuffle,
                max_bins=p.max_bins,
                init_model=ensemble_of(init_model, "init_model"),
                grows_forest=hasattr(getattr(p, "forest", None), "fit"),
            )
        loss, rules, update, extent, corrective = p._rules()
        rows = Rows(X, y, qid, group, sample_weight, query_weight, position)
        sets = EvalSets(valid, eval_set, eval_qid, eval_group, eval_names)
        coding = frame_coding(X)
        if coding is not None:
            rows, sets = p._in_codes(coding, rows, sets)
        stopping = p.early_stopping_rounds
        begun = self._begin(rows, sets, eval_metric, callbacks, checkpoint, stopping_rounds=stopping)
        data, missing_as, session = begun
        rules = replace(rules, constraints=p._constraints(data), categories=p._categories(data))
        codes = () if rules.categories is None else rules.categories.features
        train = in_bins(rows, data, p.max_bins, categories=codes, n_threads=session.n_threads)
        task = p._task(data.y, train.share.group)
        refitting = Refitting.of(p.refit, loss, task, data, session)
        start = p._start(init_model, task, train, session, rules.constraints)
        start = None if start is None else routed(start, missing_as)
        task = task.covering(start)
        told: dict[str, Any] = {"corrective": corrective, "position_l2": p.position_l2}
        result = boost(train, loss, rules, update, extent, session, task=task, start=start, **told)
        if refitting is not None:
            result = refitting.apply(result, 0 if start is None else start.n_trees)
        models_at = {size: routed(model, missing_as) for size, model in result.models_at.items()}
        result = replace(result, ensemble=routed(result.ensemble, missing_as), models_at=models_at)
        self._note(result, start, session.seed)
        if coding is not None:
            self.ensemble_ = self.ensemble_.with_metadata(categories=coding.as_note())
        return self

    def _in_codes(self, coding: Coding, rows: Rows, sets: EvalSets) -> tuple[Rows, EvalSets]:
        """Data sets whose categories are codes; those columns are then among `categorical_features`."""
        known = {
            id(rows.X): in_codes(rows.X, coding)
        }  # the training data may be measured, too, and is known by being it

        def coded(X: Any) -> Any:
            return known.setdefault(id(X), in_codes(X, coding))

        self.categorical_features = [*(self.categorical_features or ()), *(coding.columns or ())]
        return replace(rows, X=coded(rows.X)), sets.in_codes(coded)

    @property
    def _needs_matrix(self) -> bool:
        return self.refit is not False

    def _rules(self) -> tuple[Loss, TreeRules, Update, Extent, Corrective | None]:
        if not 0.0 <= self.position_l2 < np.inf:
            raise RankwoodError(f"position_l2 must be a number of at least 0, got {self.position_l2}")
        return self._loss(), self._tree_rules(), self._update(), self._extent(), self._corrective()

    def _loss(self) -> Loss:
        """What the trees minimise."""
        raise NotImplementedError

    def _tree_rules(self) -> TreeRules:
        """How each tree is grown."""
        if self.n_leaves == 1:
            raise RankwoodError("n_leaves=1 would grow trees without a split, which rank nothing: give 2 or more")
        if self.min_docs_per_leaf > 1 and not float(self.min_docs_per_leaf).is_integer():
            given = f"min_docs_per_leaf must be a whole number, or a fraction below 1, got {self.min_docs_per_leaf}"
            raise RankwoodError(given)
        sampling = rules_from(Sampling, self, per_split=self.feature_sampling == "split")
        return TreeRules(rules_from(GrowthRules, self), sampling, self.balance)

    def _constraints(self, data: Dataset) -> Constraints:
        """What the trees keep to, with the features of the data by number."""
        given = self.monotone_constraints, self.interaction_constraints, self.feature_costs, self.max_features_used
        return resolve(*given, data.n_features, data.feature_names)

    def _categories(self, data: Dataset) -> Categories | None:
        """Features that are split by sets of their values."""
        if self.categorical_features is None:
            return None
        features = numbers_of(self.categorical_features, data.n_features, data.feature_names, "categorical_features")
        both = sorted({feature for feature, _ in self._constraints(data).monotone} & set(features))
        if both:
            raise RankwoodError(
                f"feature {both[0]} is in categorical_features and in monotone_constraints: categories have no order, "
                "so leave it out of either"
            )
        return Categories(tuple(features), self.category_smoothing, self.category_l2)

    def _update(self) -> Update:
        """How trees join the ensemble."""
        return Plain(self.learning_rate)

    def _extent(self) -> Extent:
        """How far boosting goes."""
        return Extent(self.n_trees)

    def _corrective(self) -> Corrective | None:
        """When and how the leaves of all trees are corrected."""
        if isinstance(self.corrective, int):
            return Corrective(self.corrective) if self.corrective else None
        return self.corrective

    def _task(self, y: FloatArray, group: Group) -> Task:
        """What the labels are learnt as; `group` are the processes that have other labels."""
        return Regression()

    def _start(
        self, init_model: Any, task: Task, train: BinnedDataset, session: Session, constraints: Constraints
    ) -> Ensemble | None:
        """The model to boost from, if any."""
        return ensemble_of(init_model, "init_model")

    def _note(self, result: Boosted, start: Ensemble | None, seed: int) -> None:
        """Set the fitted attributes."""
        if result.ensemble.n_nodes == (0 if start is None else start.n_nodes):
            warnings.warn(
                "no tree has a split, so every document gets the same score: are all labels of a query equal, "
                f"or is min_docs_per_leaf={self.min_docs_per_leaf} too many for this data?",
                stacklevel=3,
            )
        notes = {}
        if start is not None:
            not_kept = (NOTE, "learning_curves")
            notes["init_model"] = {name: note for name, note in start.metadata.items() if name not in not_kept}
        self._set_fitted(result, seed, **notes)
        self.position_biases_ = result.position_biases


def fit_on(
    client: Any,
    ranker: Any,
    rows: Rows,
    sets: EvalSets,
    eval_metric: Any,
    callbacks: Sequence[Callback] | None,
    checkpoint: Any,
    *,
    shuffle: bool,
    max_bins: int,
    init_model: Ensemble | None = None,
    grows_forest: bool = False,
) -> Any:
    """Fit a ranker on the workers of a Dask cluster, and note on it what came of it; returns the ranker."""
    from rankwood.cluster.fit import Order, fit_on_cluster

    valid = {name: None if one is None else one.for_workers() for name, one in sets.named(rows).items()}
    order = Order(
        clone(ranker).set_params(random_state=ranker._seed()),
        rows.for_workers(),
        valid,
        max_bins,
        eval_metric,
        tuple(callbacks or ()),
        init_model,
        ranker._checkpoint(checkpoint),
        shuffle,
        alone=not ranker._needs_queries,
        grows_forest=grows_forest,
    )
    for name, value in fit_on_cluster(client, order).items():
        setattr(ranker, name, value)
    return ranker


def ensemble_of(model: Any, name: str) -> Ensemble | None:
    """The Ensemble of a fitted ranker, or the one given; `name` is that of the argument."""
    ensemble = getattr(model, "ensemble_", model)
    if ensemble is not None and not isinstance(ensemble, Ensemble):
        raise RankwoodError(f"{name} must be an Ensemble or a fitted ranker, got {type(model).__name__}")
    return ensemble


@dataclass(eq=False, repr=False, kw_only=True)
class ScheduledRanker(BoostedRanker):
    """Rankers that only ever add trees, with a weight that may depend on their number. LambdaMART explains it."""

    learning_rate_schedule: Literal["constant", "adaptive"] = "constant"
    schedule_rate: float = 0.015

    def _update(self) -> Update:
        return Plain(self.learning_rate, self.learning_rate_schedule, self.schedule_rate)


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaRanker(BoostedRanker):
    """Rankers that learn by gradients of rankings, and the parameters of these. LambdaMART explains them."""

    loss: Literal["lambdamart", "pairwise", "xendcg", "stochastic"] = "lambdamart"
    loss_measure: LossMeasure = "nDCG"
    truncation: int | None = 30
    sigma: float = 1.0
    normalize: bool = True
    gains: Sequence[float] | Literal["linear"] | None = None
    cut_discounts: bool = False
    permutations: int = 10
    noise: float = 1.0

    def _loss(self) -> Loss:
        if self.objective is not None:
            return CustomLoss(self.objective)
        if self.loss == "xendcg":
            return rules_from(CrossEntropyLoss, self)
        if self.loss == "pairwise":
            return rules_from(PairwiseLoss, self)
        if self.loss == "stochastic":
            return rules_from(StochasticLoss, self, measure=self.loss_measure)
        return rules_from(LambdaLoss, self, measure=self.loss_measure)


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaMART(ScheduledRanker, LambdaRanker):
    """LambdaMART: boosted trees that raise NDCG directly (Burges 2010), grown as in Asadi & Lin (2013).

    Parameters
    ----------
    n_trees : int, default 300
        Number of trees.
    n_leaves : int, default 64
        Most leaves of a tree. The leaf whose split gains most is split next.
    learning_rate : float, default 0.05
        Weight of every tree.
    depth_relaxation : float, default 0.0
        Asadi & Lin's lambda, from 0 to 1 (cost-sensitive growth): how much gain may be given up for a shallower tree.
    balance : float, default 0.0
        Asadi & Lin's alpha, from 0 to 1 (pruning while boosting): how full a tree must be for its depth, or its
        deepest leaves are pruned. 0 prunes nothing, 1 leaves perfect trees.
    max_depth : int or None, default None
        Most splits between the root and a leaf; None sets no limit.
    min_docs_per_leaf : float, default 20
        Fewest documents of a leaf; below 1, a fraction of those that the tree sees.
    min_gain : float, default 0.0
        Least gain of a split.
    min_hessian : float, default 1e-3
        Least sum of hessians of a leaf.
    l2 : float, default 0.0
        Added to the sum of hessians wherever it divides: keeps the values of leaves small.
    gain : {"newton", "variance"}, default "newton"
        What a split gains: the fall of the loss by Newton's approximation; or of the variance of the pseudo-responses
        (Asadi & Lin, equation 2).
    query_fraction : float, default 1.0
        Share of the queries that a tree may see, drawn anew for each.
    doc_fraction : float, default 1.0
        Share of the documents of these queries that a tree is grown on, as LightGBM's bagging_fraction; drawn anew for
        each tree. Gradients are those of whole queries.
    feature_fraction : float, default 1.0
        Share of the features that a tree, or a split, may use.
    feature_sampling : {"tree", "split"}, default "tree"
        Whether features are drawn per tree or per split.
    monotone_constraints : sequence or dict, default None
        Direction of every feature, or of some by name or number: 1, the score never falls when the feature rises; -1,
        it never rises; 0, none. Exact in the model, and kept by `refit`, `cleaver` and `shrink`. Nothing is promised
        of missing values.
    interaction_constraints : sequence of sequences, default None
        Groups of features, by name or number: features on one path from the root to a leaf are all in one group. A
        feature of no group stands alone.
    max_features_used : int or None, default None
        Most different features of the whole model; None sets no limit.
    feature_costs : sequence or dict, default None
        What a split must gain more, per feature, to be the first of the model to use it.
    categorical_features : sequence of int or str, default None
        Features whose values are codes of categories, 0 to 252, by name or number: their splits part a set of
        categories from all others, missing values and codes that training did not see among these.
    category_smoothing, category_l2 : float, default 10.0
        Of these splits: what is added to hessians when categories are put in order, in which those of about fewer
        documents have no place; and what is added to the hessian sum of both sides.
    max_bins : int, default 255
        Number of values that a feature is reduced to. Data that comes in bins keeps its own.
    missing : {"native", "zero", "infinity", "mean", "median"}, default "native"
        Where missing values go: learnt for each split; or where 0, infinity, or the mean or median of the feature in
        the training data goes, as if they had that value in training and in scoring.
    measure : str, Measure or a sequence of these, default "nDCG@10"
        What is watched on validation data. The first is also what `score` returns and what stopping early goes by.
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree.
    early_stopping_rounds : int or None, default None
        Stop when the first measure on the first validation data has not improved for so many trees, and keep the best
        size.
    objective : callable or None, default None
        A loss of your own instead of the learner's: a function `(scores, labels, offsets, weights) -> (gradient,
        hessian)`; see `rankwood.training.losses.CustomLoss`.
    position_l2 : float, default 0.0
        Pulls the biases of positions to 0, when `fit` is given positions; LightGBM's
        lambdarank_position_bias_regularization.
    corrective : int, Corrective or None, default None
        Trees after which the leaves of all trees so far are corrected: fitted jointly to the labels by Newton steps on
        the loss, again and again while trees are added; 0 or None never. `Corrective` also says how many steps, and how
        long. Trees of `init_model` stay as they are. Needs a byte of memory per document and tree.
    refit : bool or Refit, default False
        Whether the leaves of all trees are fitted jointly to the labels once training has ended, by the learner's own
        loss. The first validation data chooses the number of passes, so it must be given, and its measure is then too
        favourable; trees of `init_model` stay as they are. See `rankwood.refit`.
    importance_type : {"gain", "split"}, default "gain"
        What `feature_importances_` counts.
    on_interrupt : {"raise", "keep"}, default "raise"
        After Ctrl-C raise KeyboardInterrupt, or keep what was learnt and return.
    random_state : int, RandomState or None, default 0
        Seed of all that is drawn at random. A number gives the same model every time.
    n_jobs : int or None, default None
        Number of threads; None or -1 uses every CPU. It never changes the model.
    learning_rate_schedule : {"constant", "adaptive"}, default "constant"
        Whether all trees have the same weight. "adaptive": tree i = 0, 1, ... has the weight nu / (k + nu), where nu
        is the learning rate and k = schedule_rate * i. Meant for a learning rate of about 1: the control of Lucchese
        et al. (2017).
    schedule_rate : float, default 0.015
        How fast the weights of the adaptive schedule fall.
    loss : {"lambdamart", "pairwise", "xendcg", "stochastic"}, default "lambdamart"
        What the trees minimise: LambdaMART's loss, pairs weighed by what their exchange does to `loss_measure`;
        "pairwise", the plain logistic loss of pairs; "xendcg", the cross entropy of Bruch (2021), as LightGBM's
        rank_xendcg; "stochastic", pairs that are neighbours in rankings drawn with noise, in the spirit of CatBoost's
        YetiRank. See `rankwood.training.losses`.
    loss_measure : {"nDCG", "MAP", "MRR", "ERR"}, default "nDCG"
        The measure by which "lambdamart" and "stochastic" weigh pairs. `measure` is what is watched.
    truncation : int or None, default 30
        Pairs of documents with both ranks beyond it do not count, and the ideal DCG ends there; None takes the whole
        list.
    sigma : float, default 1.0
        Steepness of the logistic function of the difference of two scores.
    normalize : bool, default True
        Whether the gradients of a query are scaled as by LightGBM's lambdarank_norm.
    gains : sequence of float, "linear" or None, default None
        Gain of a label: None for 2^label - 1; "linear" for the label itself; or a table whose entry k is the gain of
        label k. MAP and MRR hold a document for relevant when its gain is above 0.
    cut_discounts : bool, default False
        Whether ranks beyond the truncation count nothing, so that pairs are weighed by the change of nDCG@truncation.
        LightGBM goes through the whole list.
    permutations : int, default 10
        Rankings of a query that the loss "stochastic" draws for every tree.
    noise : float, default 1.0
        Scale of the logistic noise that it adds to scores.

    Attributes
    ----------
    ensemble_ : Ensemble
        The model.
    best_iteration_ : int
        Number of boosted trees that were kept.
    best_score_ : dict
        Measures of the model: data set, then measure.
    evals_result_ : dict
        Measures after every tree: data set, then measure, then a list.
    interrupted_ : bool
        Whether Ctrl-C ended the training.
    position_biases_ : array of float or None
        What every position adds to scores in the eyes of the loss, when `fit` was given positions; only differences
        count.
    n_features_in_, feature_names_in_
        Features of the training data, as in scikit-learn.
    feature_importances_ : array of float
        Share of every feature in the gains, or in the splits.
    n_trees_, n_estimators_ : int
        Number of trees of the model.

    See Also
    --------
    RandomForest : The mean of trees that are grown independently of each other.

    Notes
    -----
    On the command line: `rankwood train lambdamart`.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.LambdaMART(n_trees=20, n_leaves=8).fit(train, valid=valid)
    >>> ranker.n_trees_, len(ranker.evals_result_["valid"]["nDCG@10"])
    (20, 20)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class MART(GradesMixin, ScheduledRanker):
    """MART, or GBRT: boosted regression trees on the labels (Mohan et al. 2011, algorithm 2).

    Queries are needed only to measure, and to sample them; without any, every row is a query of its own. The other
    parameters and attributes are LambdaMART's, but for those of its losses (loss, loss_measure, truncation, sigma,
    normalize, gains, cut_discounts, permutations, noise).

    Parameters
    ----------
    task : {"regression", "ordinal"}, default "regression"
        What the labels are learnt as: numbers; or grades, the classification setting (section 6 of the paper). Then,
        for every grade c above 0, a tree of each round learns whether the label is below c, and the score is the
        expected grade. The model has `n_trees` trees per grade, and stopping early goes by its ranking.

    Attributes
    ----------
    classes_ : array of int
        The grades, when fitted with task="ordinal"; there is then also `predict_proba`.

    Examples
    --------
    >>> import rankwood as rw
    >>> ranker = rw.MART(n_trees=5, n_leaves=4, min_docs_per_leaf=1, learning_rate=1.0)
    >>> ranker.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3]).predict([[0.0], [3.0]])
    array([0., 3.])
    >>> _ = ranker.set_params(task="ordinal").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 2])
    >>> ranker.classes_, ranker.predict_proba([[1.0]]), ranker.n_trees_
    (array([0, 1, 2]), array([[0., 1., 0.]]), 10)
    """

    task: Literal["regression", "ordinal"] = "regression"

    @property
    def _needs_queries(self) -> bool:
        return False

    def _loss(self) -> Loss:
        return SquaredLoss() if self.objective is None else CustomLoss(self.objective)

    def _task(self, y: FloatArray, group: Group) -> Task:
        if self.task == "regression":
            return Regression()
        if self.objective is not None:
            raise RankwoodError("task='ordinal' learns probabilities by squared error: leave objective out")
        return Ordinal.of(y, group)


@dataclass(eq=False, repr=False, kw_only=True)
class DART(LambdaRanker):
    """DART: each tree is grown as if some of the others were not there (Rashmi & Gilad-Bachrach 2015).

    After a tree is grown without k others it weighs nu / (k + nu), nu being the learning rate, and the weights of the
    others become k / (k + nu) of what they were. So, unlike in LambdaMART, the first trees of the model are not the
    model that there was when it had so many: early stopping restores trees and weights as they were.

    The other parameters and attributes are LambdaMART's, but for learning_rate_schedule and schedule_rate.

    Parameters
    ----------
    n_trees : int, default 500
        Number of trees. This default and the next are those of Lucchese et al. (2017), who have a learning rate of 1
        and a rate of 0.015.
    n_leaves : int, default 50
        Most leaves of a tree.
    learning_rate : float, default 0.1
        Weight of a tree that was grown without dropping others, nu.
    l2 : float, default 1.0
        With a large learning rate it keeps leaves bounded where hessians vanish.
    rate : float, default 0.1
        Share of the live trees that are dropped while a tree is grown: k = rate * trees, rounded.
    skip : float, default 0.0
        Probability that an iteration drops nothing.
    weighting : {"paper", "lightgbm"}, default "paper"
        Weights of the dropped trees and the new one: as above; or with k + 1 in place of k + nu, as in LightGBM.
    rounding : {"nearest", "floor"}, default "nearest"
        How the number of trees to drop is rounded; "floor" drops nothing while `rate` times the trees is below 1, as
        in Lucchese et al. (2017).
    loss : {"lambdamart", "pairwise", "xendcg", "stochastic", "mart"}, default "lambdamart"
        One of LambdaMART's losses; or squared error on the labels, which needs no queries.
    record_sizes : sequence of int or None, default None
        Numbers of trees: `models_at_` has the models that first had so many.

    Attributes
    ----------
    log_ : list of Step
        What happened in every iteration: trees dropped and removed, weights, measures.
    models_at_ : dict from int to Ensemble
        Models by number of trees, as far as training went.
    best_iteration_ : int
        Number of iterations that were kept.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.DART(n_trees=20, n_leaves=8, record_sizes=[10]).fit(train, valid=valid)
    >>> ranker.n_trees_, ranker.models_at_[10].n_trees, len(ranker.log_[-1].dropped)
    (20, 10, 2)
    """

    n_trees: int = field(default=500, kw_only=False)
    n_leaves: int = field(default=50, kw_only=False)
    learning_rate: float = field(default=0.1, kw_only=False)
    l2: float = 1.0
    rate: float = 0.1
    skip: float = 0.0
    weighting: Literal["paper", "lightgbm"] = "paper"
    rounding: Literal["nearest", "floor"] = "nearest"
    loss: Literal["lambdamart", "pairwise", "xendcg", "stochastic", "mart"] = "lambdamart"  # type: ignore[assignment]
    record_sizes: Sequence[int] | None = None

    @property
    def _needs_queries(self) -> bool:
        return self.loss != "mart"

    def _loss(self) -> Loss:
        return SquaredLoss() if self.loss == "mart" and self.objective is None else super()._loss()

    def _update(self) -> Update:
        return rules_from(Dart, self)

    def _extent(self) -> Extent:
        sizes = () if self.record_sizes is None else tuple(int(size) for size in self.record_sizes)
        wrong = [size for size in sizes if not 1 <= size <= self.n_trees]
        if wrong:
            raise RankwoodError(f"record_sizes must lie between 1 and n_trees={self.n_trees}, got {wrong[0]}")
        return Extent(self.n_trees, record_sizes=sizes)

    def _note(self, result: Boosted, start: Ensemble | None, seed: int) -> None:
        super()._note(result, start, seed)
        notes = self.ensemble_.metadata
        self.log_: list[Step] = list(result.steps)
        self.models_at_ = {size: model.with_metadata(**notes) for size, model in result.models_at.items()}


@dataclass(eq=False, repr=False, kw_only=True)
class XDART(DART):
    """X-DART: DART that removes the dropped trees for good when the model is better without (Lucchese et al. 2017).

    Training ends when there are `n_trees` trees, which takes more iterations than trees. What judges removals has been
    learnt from, so it is not what is reported: with 100 or more validation queries half of them judge, and measures and
    early stopping are those of the others. The other parameters and attributes are DART's.

    Parameters
    ----------
    learning_rate : float, default 1.0
        Weight of a tree that was grown without dropping others, nu, and of one that takes the place of others.
    rate : float, default 0.015
        Share of the live trees that the strategy "ratio" drops.
    strategy : {"ratio", "fixed", "adaptive"}, default "adaptive"
        How many trees k to drop: "ratio", as in DART; "fixed", always `k`; "adaptive", 1 at first, 0.5 more in every
        iteration up to `upper_bound`, and 1 again after an improvement. Always rounded, and at most half of the trees.
    k : int, default 2
        Number of trees that the strategy "fixed" drops.
    upper_bound : float, default 5
        Of the adaptive k: a number of trees, or below 1 a share of the live ones.
    reference : {"best", "previous"}, default "best"
        What the model must surpass without the dropped trees: the best of all iterations, as in the paper, or the
        previous one.
    judge : {"auto", "valid", "train"}, default "auto"
        The data on which, by the first measure.

        - "auto": a share of the queries of the first data set given for validation, when it has at least 100; its
          measures, `evals_result_` and early stopping are then those of its other queries.
        - "valid": all of that data set, as in the paper. Its measures are then better than those on other data.
        - "train": the training data, which is also taken, with a warning, when there is no validation data.
    judge_share : float, default 0.5
        Share of the validation queries that "auto" sets aside to judge by: the same ones whatever `random_state` is.
    max_iterations : int or None, default None
        End after so many iterations even if there are fewer than `n_trees` trees; 10 * n_trees unless given.

    Attributes
    ----------
    judge_queries_ : array of int or None
        Queries of the first validation data set that judged removals and that no measure is of; None when none were
        set aside. The values in `log_` are those of the queries that judged.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.XDART(n_trees=20, n_leaves=8).fit(train, valid=valid)
    >>> n_removed = sum(len(step.dropped) for step in ranker.log_ if step.removed)
    >>> ranker.n_trees_, len(ranker.log_) - n_removed
    (20, 20)
    """

    learning_rate: float = field(default=1.0, kw_only=False)
    rate: float = 0.015
    strategy: Literal["ratio", "fixed", "adaptive"] = "adaptive"
    k: int = 2
    upper_bound: float = 5
    reference: Literal["best", "previous"] = "best"
    judge: Literal["auto", "valid", "train"] = "auto"
    judge_share: float = 0.5
    max_iterations: int | None = None

    def _update(self) -> Update:
        return rules_from(XDart, self)

    def _extent(self) -> Extent:
        most = 10 * self.n_trees if self.max_iterations is None else self.max_iterations
        if most < 1:
            raise RankwoodError(f"max_iterations must be at least 1, got {most}")
        return replace(super()._extent(), max_iterations=most)

    def _note(self, result: Boosted, start: Ensemble | None, seed: int) -> None:
        super()._note(result, start, seed)
        self.judge_queries_ = result.judge_queries


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


@dataclass(eq=False, repr=False, kw_only=True)
class InitializedMART(MART):
    """iGBRT: trees boosted from where a forest ends (Mohan et al. 2011, algorithm 3); forest and trees are one model.

    With task="ordinal" every binary problem has a forest of its own to start from. With a checkpoint the forest is
    saved beside it, in a file of the same name that ends in `.forest`; a RandomForest is saved as it grows, and goes
    on from there, any other estimator when it is fitted. The other parameters and attributes are MART's.
    `monotone_constraints` hold for the forest, too, whose leaf values are moved to keep them; where the forest does not
    keep `interaction_constraints` or `max_features_used` they are refused.

    Parameters
    ----------
    n_leaves : int, default 16
        Most leaves of a boosted tree: as many as there can be at depth 4.
    max_depth : int or None, default 4
        Most splits between the root and a leaf of a boosted tree; 4 as in the paper.
    forest : Ensemble, ranker or None, default None
        What to start from: a model, of rankwood or imported; a fitted ranker; or an estimator, of which a copy is
        first fitted to the same data with the same task. None: a RandomForest as in the paper. scikit-learn's `clone`,
        and so its cross-validation, forgets what a ranker was fitted to, but keeps an Ensemble.

    Attributes
    ----------
    initial_ensemble_ : Ensemble
        The forest.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5)
    >>> start = rw.MART(n_trees=3, n_leaves=4).fit(data)
    >>> ranker = rw.InitializedMART(n_trees=5, forest=start).fit(data)
    >>> ranker.n_trees_, ranker.ensemble_.select(range(3)) == ranker.initial_ensemble_
    (8, True)
    """

    n_leaves: int = field(default=16, kw_only=False)
    max_depth: int | None = 4
    forest: Any = None

    def _start(
        self, init_model: Any, task: Task, train: BinnedDataset, session: Session, constraints: Constraints
    ) -> Ensemble | None:
        if init_model is not None:  # a model to go on from, which has its forest already
            return super()._start(init_model, task, train, session, constraints)
        forest = paper_forest(random_state=session.seed, n_jobs=self.n_jobs) if self.forest is None else self.forest
        if not hasattr(forest, "fit") or hasattr(forest, "ensemble_"):
            start = ensemble_of(forest, "forest")
        elif can_go_on(forest):
            seen: Dataset | BinnedDataset = train.data
            if (group := train.share.group).size > 1:
                without_gaps = filled(train.data, replacements(train.data, forest.missing, group))
                seen = coded_exactly(replace(train, data=without_gaps), n_threads=session.n_threads)
            start = fit_initial_forest(forest, self, seen, checkpoint=session.checkpoint).ensemble_
        else:
            start = _fit_or_load(forest, task, train, session.checkpoint)
        return None if start is None else constraints.projected(start)

    def _note(self, result: Boosted, start: Ensemble | None, seed: int) -> None:
        super()._note(result, start, seed)
        self.initial_ensemble_ = start


def paper_forest(n_trees: int = 1000, **parameters: Any) -> RandomForest:
    """The random forest of the paper: full depth, documents drawn with replacement, a tenth of the features per split.

    The paper has 10,000 trees; it finds 1,000 hardly worse (table 1), at a tenth of time and memory.
    """
    return RandomForest(n_trees=n_trees, max_features=0.1, **parameters)


def can_go_on(forest: Any) -> bool:
    """Whether a forest that was interrupted goes on from a checkpoint: its samples must be those of a number."""
    return isinstance(forest, RandomForest) and isinstance(forest.random_state, (int, np.integer))


def fit_initial_forest(
    forest: RandomForest,
    ranker: InitializedMART,
    data: Dataset | BinnedDataset,
    *,
    checkpoint: Checkpoint | None = None,
    callbacks: Sequence[Callback] = (),
) -> RandomForest:
    """A copy of the forest, fitted to what the ranker will be boosted on, with the ranker's task.

    `InitializedMART.fit` calls this. Those who want to see the forest grow call it first, with callbacks, and give the
    fitted forest to the ranker; the model and the files are the same.

    Parameters
    ----------
    forest : RandomForest
        Not fitted yet, and left alone.
    ranker : InitializedMART
        What will start from the forest.
    data : Dataset or BinnedDataset
        What both learn from; in bins when it is a share of a group of processes.
    checkpoint : Checkpoint, optional
        That of the boosting: the forest's is a file beside it, saved as often.
    callbacks : sequence of callables
        Told of every tree of the forest.
    """
    seen = data if isinstance(data, BinnedDataset) else filled(data, replacements(data, ranker.missing))
    copy: RandomForest = clone(forest).set_params(task=ranker.task)
    copy.fit(seen, callbacks=callbacks, checkpoint=None if checkpoint is None else _beside(checkpoint))
    return copy


def _fit_or_load(forest: Any, task: Task, train: BinnedDataset, checkpoint: Checkpoint | None) -> Ensemble:
    """The model of an estimator that is fitted to the data for the task, whole; kept beside the checkpoint, if any."""
    if checkpoint is None:
        return _fit_whole(forest, task, train)
    beside = _beside(checkpoint)
    parameters = {name: value for name, value in forest.get_params().items() if name != "n_jobs"}
    nothing = Ensemble.from_trees([], n_features=train.data.n_features)
    identity = identify(train, {}, nothing, {"forest": (type(forest).__name__, parameters), "task": task})
    found = beside.read(identity)
    if found is not None:
        model = found[0]
    else:
        model = _fit_whole(forest, task, train).with_metadata(checkpoint={"identity": identity})
        beside.write(model)
    notes = model.metadata
    del notes["checkpoint"]
    return model.replace(metadata=notes)


def _beside(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint of the forest, beside that of the boosting."""
    return replace(checkpoint, path=os.fspath(checkpoint.path) + ".forest")


def _fit_whole(forest: Any, task: Task, train: BinnedDataset) -> Ensemble:
    """A copy of an estimator, fitted to the data for the task; one for every problem when it knows of no tasks."""
    data = train.data
    if "task" in forest.get_params(deep=False):
        return _fitted(clone(forest).set_params(task=task.name), train, data)
    return task.combine([_fitted(clone(forest), train, data.replace(y=target)) for target in task.targets(data.y)])


def _fitted(forest: Any, train: BinnedDataset, data: Dataset) -> Ensemble:
    """The model of an estimator; `data` is that of `train`, maybe with other labels. A share stays in its bins."""
    y = inspect.signature(forest.fit).parameters.get("y")
    if y is not None and y.default is inspect.Parameter.empty:
        raise RankwoodError(
            f"forest must be a ranker or a model of rankwood, got {type(forest).__name__}: fit it, bring it in with "
            "rankwood.load_model, and give the model"
        )
    seen = data if train.share.group.size == 1 else replace(train, data=data)
    model = getattr(forest.fit(seen), "ensemble_", None)
    if not isinstance(model, Ensemble):
        raise RankwoodError(f"forest must be a ranker that has an ensemble_ when fitted, got {type(forest).__name__}")
    return model
