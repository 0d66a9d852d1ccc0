"""The parameters that boosted rankers have in common, and what they mean to a loss, to a tree and to the ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rankwood.data.bins import MAX_BINS
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.fitting.refit import Refit
from rankwood.group import Group
from rankwood.model.constraints import Constraints
from rankwood.training.constraints import numbers_of, resolve
from rankwood.training.correction import Corrective
from rankwood.training.grow import Categories, GrowthRules, Sampling, TreeRules
from rankwood.training.losses import (
    CrossEntropyLoss,
    CustomLoss,
    LambdaLoss,
    Loss,
    LossMeasure,
    PairwiseLoss,
    StochasticLoss,
)
from rankwood.training.params import rules_from
from rankwood.training.tasks import Regression, Task
from rankwood.training.updates import Plain, Update


# A dataclass writes the __init__ that scikit-learn wants: explicit, and doing nothing but assignments.
@dataclass(eq=False, repr=False, kw_only=True)
class BoostedParameters:
    """Parameters of all boosted rankers; LambdaMART's docstring explains them.

    Methods that say what parameters mean are called on a ranker whose parameters are checked (see `Ranker._checked`).
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

    def _corrective(self) -> Corrective | None:
        """When and how the leaves of all trees are corrected."""
        if isinstance(self.corrective, int):
            return Corrective(self.corrective) if self.corrective else None
        return self.corrective

    def _task(self, y: FloatArray, group: Group) -> Task:
        """What the labels are learnt as; `group` are the processes that have other labels."""
        return Regression()


@dataclass(eq=False, repr=False, kw_only=True)
class ScheduledParameters(BoostedParameters):
    """Of rankers that only ever add trees: how the weight of a tree depends on its number. LambdaMART explains it."""

    learning_rate_schedule: Literal["constant", "adaptive"] = "constant"
    schedule_rate: float = 0.015

    def _update(self) -> Update:
        return Plain(self.learning_rate, self.learning_rate_schedule, self.schedule_rate)


@dataclass(eq=False, repr=False, kw_only=True)
class RankingParameters(BoostedParameters):
    """Of rankers that learn by gradients of rankings: which loss these are of. LambdaMART explains them."""

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
