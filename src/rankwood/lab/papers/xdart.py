"""Dropout and pruning in boosting (Lucchese et al. 2017): LambdaMART, DART and X-DART by number of trees."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import non_inferiority_test, randomisation_test
from rankwood.lab.drawing import Figure, dodged, label_ends, line_style
from rankwood.lab.papers.common import PaperResults, PaperStudy, gradient_parameters
from rankwood.lab.runs import Result
from rankwood.lab.study import (
    FoldData,
    Report,
    Runs,
    Table,
    counted,
    cpu_timed,
    half_interval,
    listed,
    p_text,
    query_values,
)
from rankwood.model.ensemble import Ensemble
from rankwood.training.estimators import DART, XDART, LambdaMART

# What is compared: learners that drop trees, remove them, or do neither.


NDCG = "nDCG@10"
N_PERMUTATIONS = 10_000
SIGNIFICANT = 0.05
MARGIN = 0.005  # a loss of nDCG@10 that does not matter
FULL = "full"  # LambdaMART at the size that early stopping chooses
LEARNERS: dict[str, Any] = {"LambdaMART": LambdaMART, "DART": DART, "XDART": XDART}


@dataclass(frozen=True)
class Method:
    """A learner and its parameters; None leaves one at its default.

    DART and X-DART have the learning rate of the study.

    Examples
    --------
    >>> Method("XDART", strategy="fixed", k=2).parameters
    {'strategy': 'fixed', 'k': 2}
    """

    learner: Literal["LambdaMART", "DART", "XDART"]
    learning_rate: float | None = None
    learning_rate_schedule: Literal["adaptive"] | None = None
    strategy: Literal["ratio", "fixed", "adaptive"] | None = None
    rate: float | None = None
    k: int | None = None
    upper_bound: float | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are given, by name."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
        return {name: value for name, value in given.items() if value is not None}


# By their names in the table. The paper tuned LambdaMART to a learning rate of 0.05, DART to 1 and a rate of 1.5 %.
METHODS: dict[str, Method] = {
    "LambdaMART": Method("LambdaMART", 0.05),
    "LambdaMART adaptive": Method("LambdaMART", 1.0, "adaptive"),
    "DART 1.5%": Method("DART", rate=0.015),
    **{f"X-DART ratio {p:g}%": Method("XDART", strategy="ratio", rate=p / 100) for p in (1, 1.5, 2, 3)},
    **{f"X-DART fixed {k}": Method("XDART", strategy="fixed", k=k) for k in (1, 2, 3, 4)},
    "X-DART adaptive 5": Method("XDART", strategy="adaptive", upper_bound=5),
    "X-DART adaptive 10": Method("XDART", strategy="adaptive", upper_bound=10),
    "X-DART adaptive 1.5%": Method("XDART", strategy="adaptive", upper_bound=0.015),
}
REFERENCE = "DART 1.5%"


# The runs of the study.


@dataclass(frozen=True)
class Training:
    """A run: one method trained on one fold, its models of several sizes measured.

    Parameters
    ----------
    patience : int or None
        Trees without improvement on validation data before training stops; None: it does not.
    sizes : tuple of int
        Numbers of trees of the models that are measured.
    normalize : bool
        Whether gradients are scaled and truncated as LightGBM's.
    rounding : {"floor", "nearest"}, default "floor"
        How DART and X-DART make k whole; by the paper nothing is dropped while r * i is below 1.
    """

    fold: int
    seed: int
    method: Method
    n_trees: int
    n_leaves: int
    patience: int | None
    sizes: tuple[int, ...]
    normalize: bool
    rounding: Literal["floor", "nearest"] = "floor"


@dataclass(frozen=True)
class XdartStudy(PaperStudy):
    """All methods on every fold, several times each, measured at five sizes up to `n_trees`.

    Parameters
    ----------
    n_seeds : int, default 1
        Trainings of each method on each fold.
    n_trees : int, default 500
        Trees of DART and X-DART, and the largest of the five sizes.
    full_trees : int, default 1500
        Most trees of LambdaMART, which stops early on validation data.
    patience : int, default 100
        Trees without improvement before it does.
    n_leaves : int, default 50
        Most leaves of a tree.
    learning_rate : float, default 1.0
        Of DART and X-DART.
    methods : sequence of str
        Names of `METHODS` to run; the reference, DART, must be among them.
    normalize : bool, default False
        Whether gradients are scaled and truncated as LightGBM's instead of LambdaMART's plain ones.
    """

    name = "xdart"

    n_seeds: int = 1
    n_trees: int = 500
    full_trees: int = 1500
    patience: int = 100
    n_leaves: int = 50
    learning_rate: float = 1.0
    methods: Sequence[str] = tuple(METHODS)
    normalize: bool = False

    def __post_init__(self) -> None:
        if min(self.n_seeds, self.patience) < 1 or self.n_trees < 5 or self.full_trees < self.n_trees:
            raise RankwoodError(
                "a study needs at least one seed, 5 trees, and no fewer for the full LambdaMART than for the others"
            )
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown or REFERENCE not in self.methods:
            raise RankwoodError(f"methods are {', '.join(METHODS)}, and {REFERENCE} must be one: got {self.methods}")

    @property
    def sizes(self) -> list[int]:
        """Five numbers of trees: 100 to 500 in the paper."""
        return [self.n_trees * step // 5 for step in range(1, 6)]

    def training(self, fold: int, seed: int, name: str) -> Training:
        """The training of a method."""
        method, sizes = METHODS[name], tuple(self.sizes)
        if method.learner == "LambdaMART":
            return Training(fold, seed, method, self.full_trees, self.n_leaves, self.patience, sizes, self.normalize)
        method = dataclasses.replace(method, learning_rate=self.learning_rate)
        return Training(fold, seed, method, self.n_trees, self.n_leaves, None, sizes, self.normalize)

    def plan(self) -> list[Training]:
        seeds = range(self.n_seeds)
        return [self.training(fold, seed, name) for fold in self.folds for seed in seeds for name in self.methods]

    def report(self, runs: Runs) -> Report:
        return make_report(XdartResults(self, runs))

    def perform(self, run: Training) -> Result:
        """Train one method, and measure the models of all sizes that it reached."""
        fold = self.fold_data(run.fold)
        binned = self.binned_train(run.fold)
        ranker = self._learner(run)
        _, seconds = cpu_timed(lambda: ranker.fit(binned, valid=fold.valid))
        models: dict[str, Ensemble]
        if run.method.learner == "LambdaMART":
            within = [size for size in run.sizes if size <= ranker.n_trees_]
            models = {str(size): ranker.ensemble_.select(np.arange(size)) for size in within}
            facts: Result = {"iterations": len(ranker.evals_result_["valid"][NDCG]), "removed": 0}
            models[FULL] = ranker.ensemble_
        else:
            models = {str(size): model for size, model in ranker.models_at_.items()}
            removed = sum(len(step.dropped) for step in ranker.log_ if step.removed)
            facts = {"iterations": len(ranker.log_), "removed": removed}
        return {"seconds": seconds, **facts, "models": {at: self._measure(m, fold) for at, m in models.items()}}

    def _learner(self, run: Training) -> Any:
        """The learner of a run, with all its parameters."""
        more: dict[str, Any] = {"record_sizes": list(run.sizes), "rounding": run.rounding}
        if run.method.learner == "LambdaMART":
            more = {"early_stopping_rounds": run.patience}
        if run.method.learner == "XDART":
            more["judge"] = "valid"  # all validation queries, as in the paper
        return LEARNERS[run.method.learner](
            n_trees=run.n_trees, n_leaves=run.n_leaves, **gradient_parameters(run.normalize), **run.method.parameters,
            **more, random_state=run.seed, n_jobs=self.n_threads,
        )  # fmt: skip

    def _measure(self, model: Ensemble, fold: FoldData) -> Result:
        """Size, the mean on validation data, and the measure of every query of the test data."""
        valid = evaluate(model, fold.valid, NDCG, n_threads=self.n_threads)
        test = evaluate(model, fold.test, NDCG, n_threads=self.n_threads)
        return {"n_trees": model.n_trees, "valid": valid[NDCG], "test": test.per_query[NDCG].tolist()}


# What follows from the runs.


@dataclass(frozen=True)
class Equivalence:
    """A model compared with the reference on the test queries of all folds."""

    method: str
    size: int | str
    difference: float  # above 0: better than the reference
    p_value: float
    p_inferior: float  # that it loses the margin or more

    @property
    def holds(self) -> bool:
        """Whether it is not significantly worse, which the paper prints in bold."""
        return self.p_value > SIGNIFICANT or self.difference > 0


@dataclass(frozen=True)
class XdartResults(PaperResults):
    """The results of all runs, and what follows from them."""

    study: XdartStudy

    def of(self, method: str, fold: int | None = None) -> list[Mapping[str, Any]]:
        """The results of a method, on all folds or one."""
        study = self.study
        folds = study.folds if fold is None else [fold]
        return [self.result(study.training(one, seed, method)) for one in folds for seed in range(study.n_seeds)]

    def test_values(self, method: str, size: int | str) -> FloatArray | None:
        """Values of the test queries of all folds, each the mean over seeds; None unless every run reached the size."""
        folds = []
        for fold in self.study.folds:
            models = [result["models"].get(str(size)) for result in self.of(method, fold)]
            if any(model is None for model in models):
                return None
            folds.append([model["test"] for model in models])
        return query_values(folds)

    def mean(self, method: str, size: int | str, part: str = "test") -> float | None:
        """Mean over folds and seeds on test or validation data; None unless every run reached the size."""
        if self.test_values(method, size) is None:
            return None
        found = [float(np.mean(result["models"][str(size)][part])) for result in self.of(method)]
        return float(np.mean(found))

    def full_size(self, method: str) -> float:
        """Mean number of trees that early stopping left of LambdaMART."""
        return float(np.mean([result["models"][FULL]["n_trees"] for result in self.of(method)]))

    def fact(self, method: str, name: str) -> float:
        """Mean over runs of seconds, iterations or removed trees."""
        return float(np.mean([result[name] for result in self.of(method)]))

    def equivalence(
        self, method: str, size: int | str, *, to: str = REFERENCE, at: int | str | None = None
    ) -> Equivalence | None:
        """A model against another, DART with all trees unless given; None when one of the two was not reached."""
        ours = self.test_values(method, size)
        theirs = self.test_values(to, self.study.n_trees if at is None else at)
        if ours is None or theirs is None:
            return None
        test = randomisation_test(theirs, ours, n_permutations=N_PERMUTATIONS)
        inferior = non_inferiority_test(theirs, ours, margin=MARGIN).p_value
        return Equivalence(method, size, test.mean_difference, test.p_value, inferior)

    def smallest(self, method: str, *, to: str = REFERENCE, at: int | str | None = None) -> Equivalence | None:
        """The smallest model of a method that is not significantly worse than another; None without one."""
        for size in self.study.sizes:
            found = self.equivalence(method, size, to=to, at=at)
            if found is not None and found.holds:
                return found
        return None


# Table 1 and figure 1 of the paper, its numbers beside ours.


# Table 1 of the paper: 100 to 500 trees, then the full LambdaMART (1,199 and 1,500 trees).
PAPER: dict[str, dict[str, tuple[float | None, ...]]] = {
    "MSLR-WEB30K-F1": {
        "LambdaMART": (0.4540, 0.4694, 0.4745, 0.4752, 0.4766, 0.4791),
        "LambdaMART adaptive": (0.4520, None, None, None, None, None),
        "DART 1.5%": (0.4659, 0.4737, 0.4775, 0.4795, 0.4807, None),
        "X-DART ratio 1%": (0.4627, 0.4713, 0.4749, 0.4766, 0.4784, None),
        "X-DART ratio 1.5%": (0.4646, 0.4729, 0.4758, 0.4785, 0.4788, None),
        "X-DART ratio 2%": (0.4694, 0.4757, 0.4778, 0.4797, 0.4812, None),
        "X-DART ratio 3%": (0.4746, 0.4785, 0.4792, 0.4808, 0.4809, None),
        "X-DART fixed 1": (0.4715, 0.4722, None, None, None, None),
        "X-DART fixed 2": (0.4740, 0.4770, 0.4784, 0.4776, 0.4777, None),
        "X-DART fixed 3": (0.4738, 0.4775, 0.4783, 0.4799, 0.4793, None),
        "X-DART fixed 4": (0.4725, 0.4776, 0.4788, 0.4800, 0.4804, None),
        "X-DART adaptive 5": (0.4729, 0.4777, 0.4794, 0.4805, 0.4802, None),
        "X-DART adaptive 10": (0.4729, 0.4765, 0.4770, 0.4789, 0.4793, None),
        "X-DART adaptive 1.5%": (0.4709, 0.4737, 0.4768, 0.4770, 0.4766, None),
    },
    "Istella-S": {
        "LambdaMART": (0.6988, 0.7239, 0.7343, 0.7397, 0.7433, 0.7530),
        "LambdaMART adaptive": (0.7255, 0.7278, 0.7303, 0.7314, 0.7320, 0.7353),
        "DART 1.5%": (0.7329, 0.7434, 0.7477, 0.7494, 0.7516, None),
        "X-DART ratio 1%": (0.7274, 0.7408, 0.7467, 0.7499, 0.7513, None),
        "X-DART ratio 1.5%": (0.7364, 0.7451, 0.7488, 0.7517, 0.7526, None),
        "X-DART ratio 2%": (0.7344, 0.7442, 0.7477, 0.7490, None, None),
        "X-DART ratio 3%": (0.7377, 0.7431, 0.7449, None, None, None),
        "X-DART fixed 1": (0.7414, 0.7465, 0.7465, 0.7471, 0.7482, None),
        "X-DART fixed 2": (0.7403, 0.7476, 0.7504, 0.7517, 0.7529, None),
        "X-DART fixed 3": (0.7374, 0.7455, 0.7482, 0.7508, 0.7532, None),
        "X-DART fixed 4": (0.7330, 0.7439, 0.7491, 0.7511, 0.7535, None),
        "X-DART adaptive 5": (0.7427, 0.7480, 0.7517, 0.7532, 0.7526, None),
        "X-DART adaptive 10": (0.7427, 0.7478, 0.7514, None, None, None),
        "X-DART adaptive 1.5%": (0.7428, 0.7484, 0.7507, 0.7518, 0.7525, None),
    },
}
# Figure 1 has one setting of each strategy.
PAPER_SIZES = (100, 200, 300, 400, 500)
SHOWN = ("X-DART ratio 1.5%", "X-DART fixed 2", "X-DART fixed 4", "X-DART adaptive 5", REFERENCE, "LambdaMART")


def make_report(found: XdartResults) -> Report:
    """Make tables and figures of a study whose runs are all done."""
    tables = [_table1(found), _saved(found), *(_paper(name) for name in PAPER)]
    methods = [method for method in found.study.methods if method != REFERENCE]
    against = [(method, size, found.equivalence(method, size)) for method in methods for size in found.study.sizes]
    return Report(
        title=f"Dropout and pruning: {found.study.source.name}",
        summary=_summary(found),
        tables=tables,
        figures=[_figure1(found)],
        differences=_differences(found),
        facts={
            "folds": list(found.study.folds),
            "n_seeds": found.study.n_seeds,
            "sizes": found.study.sizes,
            "equivalences": [{**dataclasses.asdict(e), "holds": e.holds} for _, _, e in against if e is not None],
        },
    )


def _summary(found: XdartResults) -> str:
    """The outcome in a few sentences."""
    study = found.study
    best = [e for name in study.methods if METHODS[name].learner == "XDART" and (e := found.smallest(name)) is not None]
    reached = "no X-DART model reaches it"
    if best:
        # Of models of one size the one that removed trees: without removals X-DART is DART.
        removed = {e.method: found.fact(e.method, "removed") for e in best}
        least = min(best, key=lambda e: (e.size, removed[e.method] == 0, -e.difference))
        own = found.smallest(REFERENCE)
        better = least.difference > 0 and least.p_value <= SIGNIFICANT
        reached = (
            f"{least.method}, which removed {removed[least.method]:,.1f} trees a run, is "
            f"{'significantly better' if better else 'not significantly worse'} with {least.size:,} of "
            f"{study.n_trees:,} trees (p {p_text(least.p_value)})"
        )
        if own is not None and int(own.size) < study.n_trees:
            reached += f"; DART itself is no worse with {own.size:,}"
    return (
        f"{NDCG} of {study.n_trees:,} trees of up to {study.n_leaves} leaves; folds "
        f"{listed(study.folds)}, {counted(study.n_seeds, 'run')} each. Reference: "
        f"{REFERENCE} with {study.n_trees:,} trees, "
        f"{found.mean(REFERENCE, study.n_trees):.4f} on test data; {reached}."
    )


def _number(value: float | None) -> str:
    """Four decimals, or a dash."""
    return "–" if value is None else f"{value:.4f}"


def _table1(found: XdartResults) -> Table:
    """Quality by number of trees; a star where it is not significantly below the reference."""
    rows = []
    for method in found.study.methods:
        row = [method]
        for size in found.study.sizes:
            compared = found.equivalence(method, size)
            star = "*" if compared is not None and compared.holds else ""
            row.append(_number(found.mean(method, size)) + star)
        full = found.mean(method, FULL)
        row.append("–" if full is None else f"{full:.4f} ({found.full_size(method):,.0f})")
        rows.append(row)
    return Table(
        "table1",
        f"Table 1: {NDCG} on test data by number of trees, {found.study.source.name}",
        ["method", *(f"{size:,}" for size in found.study.sizes), "full (trees)"],
        rows,
        f"*: as good as {REFERENCE} with {found.study.n_trees:,} trees or better (randomisation test over the test "
        f"queries of all folds, {N_PERMUTATIONS:,} permutations, p > {SIGNIFICANT}). –: not reached.",
    )


def _saved(found: XdartResults) -> Table:
    """The smallest models that are as good as a reference, and what their training took."""
    study, rows = found.study, []
    has_full = "LambdaMART" in study.methods
    for method in study.methods:
        row = [method]
        for to, at in ((REFERENCE, study.n_trees), ("LambdaMART", FULL)):
            if to == "LambdaMART" and not has_full:
                row += ["–", "–"]
                continue
            smallest = None if method == to else found.smallest(method, to=to, at=at)
            if smallest is None:
                row += ["–", "–"]
            else:
                whole = study.n_trees if to == REFERENCE else found.full_size(to)
                change = int(smallest.size) / whole - 1
                row.append(f"{smallest.size:,} ({change:+.0%})")
                row.append(f"{smallest.difference:+.4f}, p {p_text(smallest.p_value)}, {p_text(smallest.p_inferior)}")
        last = [size for size in study.sizes if found.mean(method, size) is not None]
        valid, test = (found.mean(method, last[-1], part) if last else None for part in ("valid", "test"))
        gap = "–" if valid is None or test is None else f"{valid - test:+.4f}"
        facts = [f"{found.fact(method, name):,.0f}" for name in ("iterations", "removed")]
        rows.append([*row, gap, *facts, f"{found.fact(method, 'seconds'):.1f}"])
    return Table(
        "saved",
        f"The smallest models that are as good: {study.source.name}",
        ["method", f"as good as {REFERENCE}, {study.n_trees:,}", "difference", "as good as the full LambdaMART",
         "difference", "validation - test", "iterations", "trees removed", "s"],
        rows,
        "The smallest of the sizes of table 1 that is not significantly worse, and how many trees more or fewer "
        f"that is. The second p is of the proof that the first is not: if small, it loses less than {MARGIN:g} "
        "(one-sided t-test). What judges removals is learnt from: validation - test, of the largest size, says how "
        "much. s: CPU seconds of training, of all threads together.",
    )  # fmt: skip


def _paper(name: str) -> Table:
    """The paper's own table 1 for one data set."""
    rows = [[method, *(_number(value) for value in values)] for method, values in PAPER[name].items()]
    return Table(
        f"paper-{name.lower()}",
        f"The paper's table 1: {name}",
        ["method", "100", "200", "300", "400", "500", "full"],
        rows,
        "LambdaMART's full size was 1,199 trees on MSLR-WEB30K-F1 and 1,500 on Istella-S. Compare the order with ours, "
        "not the numbers, unless the data are the same.",
    )


def _figure1(found: XdartResults) -> Figure:
    """Quality over number of trees: X-DART's strategies, DART and LambdaMART, ours and on the paper's two data sets."""
    name, sizes = found.study.source.name, found.study.sizes
    ours = {method: tuple(found.mean(method, size) for size in sizes) for method in found.study.methods}
    panels: dict[str, tuple[Sequence[int], dict[str, tuple[float | None, ...]]]]
    panels = {name: (sizes, ours), **{f"{data}, the paper": (PAPER_SIZES, rows) for data, rows in PAPER.items()}}

    def draw(canvas: Any) -> None:
        axes = canvas.subplots(1, len(panels))
        for axis, (title, (at, rows)) in zip(axes, panels.items(), strict=True):
            ends = []
            for number, method in enumerate(SHOWN):
                # Of the sizes alone: the paper's last column is LambdaMART's full model.
                values = [np.nan if value is None else value for value in rows.get(method, ())][: len(at)]
                if len(values) < len(at) or np.isnan(values).all():
                    continue
                how, x = line_style(number, len(SHOWN)), dodged(at, number, len(SHOWN))
                bars = [_reach(found, method, size) for size in at] if title == name else None
                axis.errorbar(x, values, bars, elinewidth=0.7, **how)
                last = int(np.flatnonzero(~np.isnan(values))[-1])
                ends.append((x[last], values[last], method, how["color"]))
            axis.set(xlabel="trees", xticks=at, title=title)
            axis.grid(alpha=0.3)
            label_ends(axis, ends, 3.4)
        axes[0].set_ylabel(f"{NDCG} on test data")

    return Figure("figure1", f"Figure 1: X-DART's strategies, DART and LambdaMART, {name} and the paper's data. Bars: "
                  f"95 % interval of the difference from {REFERENCE} with as many trees, over queries.", draw,
                  (14.0, 4.4))  # fmt: skip


def _reach(found: XdartResults, method: str, size: int) -> float:
    """Half of the 95 % interval of a model's difference from DART with as many trees; 0 where there is none."""
    ours, theirs = (found.test_values(one, size) for one in (method, REFERENCE))
    return 0.0 if ours is None or theirs is None or method == REFERENCE else half_interval(theirs, ours)


def _differences(found: XdartResults) -> list[str]:
    """What was done otherwise than in the paper."""
    study = found.study
    return [
        "The data are others than the paper's, MSLR-WEB30K fold 1 and Istella-S, unless --data names them.",
        f"Learning rates (0.05 for LambdaMART, 1 for its adaptive control, {study.learning_rate:g} for DART and "
        f"X-DART) and leaves ({study.n_leaves}) are not tuned again; the paper's best were 0.05, 1, 1 and 50. "
        "Leaf values of DART and X-DART are shrunk by l2 = 1, which bounds them where hessians vanish.",
        "k is rounded down, which the paper says of DART alone (nothing is dropped while r * i < 1), and is at most "
        "half of the trees.",
        *(["Gradients are scaled and truncated as by LightGBM (--normalize); the paper's are LambdaMART's plain ones."]
          if study.normalize else []),
        "Removals are judged by nDCG@10 on validation data. DART and X-DART never stop early here: a size is missing "
        "when it was not reached within ten iterations per tree.",
        "Trees have at least 20 documents per leaf and look at 255 bins of every feature.",
    ]  # fmt: skip
