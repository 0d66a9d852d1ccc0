"""Boosted rankers as scikit-learn estimators: LambdaMART, MART, DART, X-DART, iGBRT."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rankwood.coding import Coding
from rankwood.data.bins import BinnedDataset
from rankwood.data.text import as_paths
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.group import Group
from rankwood.model.constraints import Constraints
from rankwood.model.ensemble import Ensemble
from rankwood.training.boosted_parameters import BoostedParameters, RankingParameters, ScheduledParameters
from rankwood.training.boosting import Boosted, Extent, boost
from rankwood.training.callbacks import Callback, Step
from rankwood.training.checkpoint import Checkpoint
from rankwood.training.correction import Corrective
from rankwood.training.driver import Session
from rankwood.training.grow import TreeRules
from rankwood.training.initial_forest import fitted_start, paper_forest
from rankwood.training.inputs import EvalSets, Rows, in_bins, in_codes, is_paths, routed, training_coding
from rankwood.training.losses import CustomLoss, Loss, SquaredLoss
from rankwood.training.params import rules_from
from rankwood.training.ranker import GradesMixin, Ranker
from rankwood.training.refitting import Refitting
from rankwood.training.tasks import NOTE, Ordinal, Regression, Task
from rankwood.training.updates import Dart, Update, XDart


@dataclass(eq=False, repr=False, kw_only=True)
class BoostedRanker(BoostedParameters, Ranker):
    """Base of the boosted rankers; a subclass adds parameters of its own and says which loss they mean.

    LambdaMART's docstring explains the parameters and fitted attributes.
    """

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
            from rankwood.cluster.fit import fit_on

            if p.refit is not False:
                raise RankwoodError("refit needs the features on one machine: use rankwood.refit afterwards")
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
        coding = training_coding(rows.X, p.categorical_features, p._codes_so_far(init_model))
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
        known = coding or p._codes_so_far(init_model)  # data in codes goes on with those of the model
        if known is not None:
            self.ensemble_ = self.ensemble_.with_metadata(categories=known.as_note())
        return self

    def _codes_so_far(self, init_model: Any) -> Coding | None:
        """The coding of the model to boost from, if any."""
        start = ensemble_of(init_model, "init_model")
        return None if start is None else start.coding

    def _in_codes(self, coding: Coding, rows: Rows, sets: EvalSets) -> tuple[Rows, EvalSets]:
        """Data sets whose categories are codes; those columns are then among `categorical_features`."""
        known: dict[Any, Any] = {}  # the training data may be measured, too, and is known by being it

        def coded(X: Any) -> Any:
            key = str(as_paths(X)) if is_paths(X) else id(X)
            if key not in known:
                known[key] = in_codes(X, coding, n_threads=self._n_threads())
            return known[key]

        known[id(rows.X)] = coded(rows.X)
        self.categorical_features = [*(self.categorical_features or ()), *(coding.columns or ())]
        return replace(rows, X=known[id(rows.X)]), sets.in_codes(coded)

    @property
    def _needs_matrix(self) -> bool:
        return self.refit is not False

    def _rules(self) -> tuple[Loss, TreeRules, Update, Extent, Corrective | None]:
        if not 0.0 <= self.position_l2 < np.inf:
            raise RankwoodError(f"position_l2 must be a number of at least 0, got {self.position_l2}")
        return self._loss(), self._tree_rules(), self._update(), self._extent(), self._corrective()

    def _extent(self) -> Extent:
        """How far boosting goes."""
        return Extent(self.n_trees)

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


def ensemble_of(model: Any, name: str) -> Ensemble | None:
    """The Ensemble of a fitted ranker, or the one given; `name` is that of the argument."""
    ensemble = getattr(model, "ensemble_", model)
    if ensemble is not None and not isinstance(ensemble, Ensemble):
        raise RankwoodError(f"{name} must be an Ensemble or a fitted ranker, got {type(model).__name__}")
    return ensemble


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaMART(ScheduledParameters, RankingParameters, BoostedRanker):
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
        Direction of every feature, or of some by name or number from 0: 1, the score never falls when the feature
        rises; -1, it never rises; 0, none. Exact in the model, and kept by `refit`, `cleaver` and `shrink`. Nothing is
        promised of missing values.
    interaction_constraints : sequence of sequences, default None
        Groups of features, by name or number from 0: features on one path from the root to a leaf are all in one
        group. A feature of no group stands alone.
    max_features_used : int or None, default None
        Most different features of the whole model; None sets no limit.
    feature_costs : sequence or dict, default None
        What a split must gain more, per feature, to be the first of the model to use it.
    categorical_features : sequence of int or str, default None
        Features that are categories, by name or number from 0: columns of texts, or of codes from 0 to 252. Columns of
        a type of categories are taken without. Their splits part a set of categories from all others, missing values
        and categories that training did not see among these.
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
class MART(GradesMixin, ScheduledParameters, BoostedRanker):
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
class DART(RankingParameters, BoostedRanker):
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
        if hasattr(forest, "fit") and not hasattr(forest, "ensemble_"):
            start: Ensemble | None = fitted_start(forest, self, task, train, session)
        else:
            start = ensemble_of(forest, "forest")
        return None if start is None else constraints.projected(start)

    def _codes_so_far(self, init_model: Any) -> Coding | None:
        start = getattr(self.forest, "ensemble_", self.forest)
        is_model = init_model is None and isinstance(start, Ensemble)
        return super()._codes_so_far(start if is_model else init_model)

    def _note(self, result: Boosted, start: Ensemble | None, seed: int) -> None:
        super()._note(result, start, seed)
        self.initial_ensemble_ = start
