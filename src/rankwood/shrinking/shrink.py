"""Shrink any tree ranker: students of several kinds along a path of sizes, the cheapest that is proven good enough.

::

    model ── fitted to labels once more ──┐
      │                                   │                             fitting.refit
      ▼                                   ▼
    scores of training (and unlabelled) documents: the lesson           students.Lesson
      │
      ├── trees of the model that explain most, leaves fitted jointly   students.select_trees
      └── trees grown anew, all leaves fitted jointly after each stage  students.grow_trees
            │
            ▼  for every size, the largest first                        path
          weak features and nodes go, all leaves fitted jointly         students.thin
            │
            ▼
          leaves fitted to labels; the best route and pass by           choice
          validation queries, none of which judges what it chose
            │
            ▼
          proof, size by size, until one fails                          pruning.accept, result
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from rankwood._version import __version__
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import ModelError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator, weighted_values
from rankwood.evaluation.measures import AnyMeasure, parse_measure
from rankwood.evaluation.significance import in_sequence
from rankwood.fitting.outputs import sample_queries
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Judging, Proof
from rankwood.pruning.judging import checked, compared, measured, proof_on, roles_of, timed
from rankwood.shrinking.choice import Candidate, Choosers
from rankwood.shrinking.notebook import Notebook
from rankwood.shrinking.path import Candidates, Path, ShrinkSettings, Size
from rankwood.shrinking.result import Cost, ShrinkResult, ShrinkRow
from rankwood.training.checkpoint import identify_settings
from rankwood.training.driver import OnInterrupt, deferred_interrupt

PLENTY = 4000  # validation queries; half of them show a loss of less than 0.005 of most models


def shrink(
    model: Any,
    train: Dataset,
    valid: Dataset,
    *,
    test: Dataset | None = None,
    unlabelled: Dataset | Sequence[Dataset] | None = None,
    judge: Dataset | float | Literal["auto", "folds"] | None = "auto",
    measure: AnyMeasure = "nDCG@10",
    convention: str | Convention = "rankwood",
    margin: float = 0.005,
    alpha: float = 0.05,
    leaves: int | None = None,
    budget_us: float | None = None,
    factor: float | None = None,
    cost: Cost = "leaves",
    settings: ShrinkSettings | None = None,
    measure_speed: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    on_interrupt: OnInterrupt = "keep",
    n_threads: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> ShrinkResult:
    """Make a tree ranker several times smaller, and show that it loses less than a margin.

    Works on any Ensemble, whoever trained it, also on one that was stopped in time and has no tree to spare. Small
    models learn the scores of the large one; for every size the best of them is chosen by validation queries and
    judged by queries that did not choose it.

    Parameters
    ----------
    model : Ensemble or fitted ranker
        The model to make smaller.
    train : Dataset
        Data to learn from: the model's scores of its documents, and its labels.
    valid : Dataset
        Data that chooses, and judges (`judge`).
    test : Dataset or None, default None
        Data that is only measured: `result.test` compares the result with the input there.
    unlabelled : Dataset, sequence of Dataset or None, default None
        More documents in queries, as logs have them: the model's scores of them are learnt, labels are not looked at.
    judge : Dataset, float, "auto", "folds" or None, default "auto"
        Queries that judge.

        - "auto": half of the validation queries are set aside when there are 4,000 or more, else "folds".
        - "folds": every fold of the validation queries judges what the other folds chose, at no extra cost; the model
          that is returned is what all of them choose. With fewer than 10 queries to a fold it is None.
        - a share of the validation queries, or other data: these queries choose nothing.
        - None: all validation queries choose. Nothing is shown, and nothing is accepted.
    measure : str, Measure or callable, default "nDCG@10"
        Measure that must not get worse.
    convention : str or Convention, default "rankwood"
        Convention of the measure.
    margin : float, default 0.005
        Loss of the measure that must be ruled out.
    alpha : float, default 0.05
        Level of the one-sided test. Sizes are tested from the largest to the smallest until one fails, which needs no
        correction for their number.
    leaves : int or None, default None
        Leaves that the model should have at most.
    budget_us : float or None, default None
        Microseconds that scoring a document may take, on one thread of this machine.
    factor : float or None, default None
        How many times fewer leaves the model should have. At most one of the three is given; without any, the cheapest
        model that passes is taken.
    cost : {"leaves", "us"}, default "leaves"
        What cheap means: leaves, so that the same model comes out on every machine, or measured microseconds.
    settings : ShrinkSettings or None, default None
        What is seldom changed: routes, sizes, steps, folds, seed.
    measure_speed : bool, default True
        Whether scoring with every model of the path is timed.
    checkpoint : path or None, default None
        File that finished steps are kept in, and gone on from when it exists.
    on_interrupt : {"keep", "raise"}, default "keep"
        Whether Ctrl-C ends the search with the sizes there are, or is an exception.
    n_threads : int or None, default None
        Threads; all CPUs when None. The model does not depend on it.
    progress : callable or None, default None
        Called now and then with the work done and the work in all.

    Returns
    -------
    ShrinkResult
        The chosen model, `ensemble`, the path, `rows`, and what was shown, `proof`.

    See Also
    --------
    cleaver : Takes trees out and re-weighs the rest, as in the paper.
    refit : Fits all leaves to labels once more; nothing gets smaller.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=200, docs_per_query=20, n_features=8).split(0.5)
    >>> model = rw.LambdaMART(n_trees=60, n_leaves=8, learning_rate=0.1).fit(train).ensemble_
    >>> result = rw.shrink(model, train, valid, margin=0.1, factor=4, measure_speed=False)
    >>> result.ensemble.n_leaves <= 120, result.proof.holds
    (True, True)
    """
    model, how, rule = _checked_model(model), settings or ShrinkSettings(), Acceptance("non-inferior", margin, alpha)
    target = Target.of(model, leaves, budget_us, factor)
    roles = roles_of(checked(valid, "valid"), judge, plenty=PLENTY, seed=how.seed, n_folds=how.folds)
    train = sample_queries(checked(train, "train"), how.max_queries, seed=how.seed)
    extra = [] if unlabelled is None else [unlabelled] if isinstance(unlabelled, Dataset) else list(unlabelled)
    bind = partial(Evaluator, measures=parse_measure(measure), convention=convention, n_threads=n_threads)
    on_judge, on_test = (None if data is None else bind(data) for data in (roles.judges, test))
    for evaluator in filter(None, (bind(valid), bind(train), on_judge, on_test)):
        evaluator.evaluate(model)  # data that does not suit the model is refused before the long search

    choosers = Choosers(_weights(roles.chooses), how.folds if roles.judging == "folds" else 0, how.seed)
    on_train, on_valid = (bind(data, by_query=True) for data in (train, roles.chooses))
    notebook = Notebook(checkpoint, _identity(model, on_train, on_valid, extra, how, choosers.n_folds))
    path = Path(model, on_train, on_valid, extra, choosers, how, notebook)
    sizes = target.sizes(model, how)
    refitted, found, interrupted = _walked(path, sizes, progress)
    if interrupted and (on_interrupt == "raise" or not found):
        raise KeyboardInterrupt

    rows = _rows(model, refitted, found, on_valid)
    rows = _judged(rows, found, on_valid, on_judge, rule, roles.judging)
    rows = rows if on_test is None else _tested(rows, on_test)
    timings = timed([row.ensemble for row in rows], valid) if measure_speed or budget_us is not None else ()
    if timings:
        rows = [replace(row, us_per_doc=timing.us_per_doc) for row, timing in zip(rows, timings, strict=True)]
    chosen, reached = target.choose(rows, cost)
    accepted = chosen is not rows[0]
    return ShrinkResult(
        ensemble=chosen.ensemble.with_metadata(shrink=_note(rows[0], chosen, how)) if accepted else model,
        accepted=accepted,
        reached=reached,
        chosen=chosen,
        rows=tuple(rows),
        measure=str(parse_measure(measure)),
        convention=on_valid.convention,
        rule=rule,
        judging=roles.judging,
        test=compared(model, chosen.ensemble, on_test) if accepted and on_test is not None else None,
        test_proof=proof_on(on_test, model, chosen.ensemble, rule) if accepted and on_test is not None else None,
        timings=tuple(timings),
        interrupted=interrupted,
    )


# Inputs: how small the model is to be, and which queries choose and which judge.


@dataclass(frozen=True)
class Target:
    """What was asked for: so many leaves, so many microseconds, or the cheapest model that passes (neither).

    Parameters
    ----------
    leaves : int or None
        Leaves at most.
    us : float or None
        Microseconds per document at most.
    """

    leaves: int | None = None
    us: float | None = None

    @classmethod
    def of(cls, model: Ensemble, leaves: int | None, budget_us: float | None, factor: float | None) -> Target:
        """What was asked for by one of three numbers at most."""
        given = {"leaves": leaves, "budget_us": budget_us, "factor": factor}
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) > 1:
            raise RankwoodError(f"{' and '.join(named)} both say how small the model is to be: give one of them")
        for name, value in named.items():
            if not 0.0 < value < np.inf:
                raise RankwoodError(f"{name} must be a positive number, got {value}")
        if factor is not None:
            leaves = round(model.n_leaves / factor)
        if leaves is not None and not 1 < leaves < model.n_leaves:
            raise RankwoodError(
                f"the model has {model.n_leaves:,} leaves: a smaller one must have 2 to {model.n_leaves - 1:,}, "
                f"got {leaves:,}"
            )
        return cls(leaves, budget_us)

    def sizes(self, model: Ensemble, how: ShrinkSettings) -> list[int]:
        """Leaves of the models on the path, down to what was asked for."""
        sizes = sorted({max(2, round(model.n_leaves / factor)) for factor in how.factors}, reverse=True)
        sizes = [size for size in sizes if size < model.n_leaves]
        return sizes if self.leaves is None else [size for size in sizes if size > self.leaves] + [self.leaves]

    def is_met(self, row: ShrinkRow) -> bool:
        """Whether a model is as small, or as fast, as was asked for."""
        few_leaves = self.leaves is None or row.n_leaves <= self.leaves
        return few_leaves and (self.us is None or (row.us_per_doc is not None and row.us_per_doc <= self.us))

    def choose(self, rows: Sequence[ShrinkRow], cost: Cost) -> tuple[ShrinkRow, bool]:
        """The accepted row to take, and whether it is what was asked for; the first row when none is accepted.

        Of several within a budget it is the largest; without one, or when none is within it, the cheapest.
        """
        accepted = [row for row in rows if row.accepted]
        met = [row for row in accepted if self.is_met(row)]
        if met and (self.leaves is not None or self.us is not None):
            return max(met, key=lambda row: row.n_leaves), True  # a route may begin with less than a size allows
        chosen = min(accepted, key=lambda row: row.cost(cost), default=rows[0])
        return chosen, self.is_met(chosen)


def _checked_model(model: Any) -> Ensemble:
    model = getattr(model, "ensemble_", model)
    if not isinstance(model, Ensemble):
        raise ModelError(
            f"shrinking takes an Ensemble or a fitted ranker, got {type(model).__name__}; models of other libraries "
            "come in with rankwood.load_model"
        )
    if model.n_leaves - model.n_trees < 2:
        raise ModelError("the model has fewer than two splits: there is nothing to shrink")
    return model


def _weights(data: Dataset) -> FloatArray:
    return np.ones(data.n_queries) if data.query_weights is None else data.query_weights


def _identity(
    model: Ensemble, train: Evaluator, valid: Evaluator, extra: Sequence[Dataset], how: ShrinkSettings, n_folds: int
) -> dict[str, str]:
    """Everything that the steps of the search depend on."""
    return {
        "model": model.fingerprint(),
        "training data": train.data.fingerprint(),
        "validation data": valid.data.fingerprint(),
        "unlabelled data": " ".join(data.fingerprint() for data in extra),
        **identify_settings(
            {
                "measure": str(train.measures[0]),
                "convention": train.convention.name,
                "settings": replace(how, factors=(2.0,)),  # other sizes do not change the steps there are
                "folds": n_folds,
            }
        ),
    }


# The search.


class _Enough(Exception):
    """Ends the search: Ctrl-C was pressed, or `progress` raised KeyboardInterrupt."""


def _walked(
    path: Path, sizes: Sequence[int], progress: Callable[[float, float], None] | None
) -> tuple[Candidate, list[Size], bool]:
    """The refitted input, the best model of every size, and whether Ctrl-C ended the search.

    A second Ctrl-C is an exception.
    """
    done, total, first = 0.0, path.work(sizes), path.work_of_teacher()
    walked: list[Candidates] = []
    with deferred_interrupt() as pressed:

        def tick(work: float) -> None:
            nonlocal done
            done += work
            try:
                if progress is not None:
                    progress(done, total)
            except KeyboardInterrupt:
                raise _Enough from None
            if pressed():
                raise _Enough

        refitted = path.teacher()
        try:
            tick(first)
            for candidates in path.walk(sizes, tick):
                walked.append(candidates)
        except _Enough:
            return refitted, path.best(walked), True
    return refitted, path.best(walked), False


# The table: each step fills in columns.


def _rows(model: Ensemble, refitted: Candidate, found: Sequence[Size], valid: Evaluator) -> list[ShrinkRow]:
    """Rows of the input, of the input with refitted leaves, and of the best model of every size."""
    mean = measured(valid, model).mean

    def row(route: str, ensemble: Ensemble, mean: float) -> ShrinkRow:
        n_features = len(np.unique(ensemble.feature))
        return ShrinkRow(route, ensemble.n_trees, ensemble.n_leaves, n_features, mean, ensemble)

    return [
        row("input", model, mean),
        row("refitted input", refitted.ensemble, float(valid.mean(refitted.values))),
        *(row(size.route, size.candidate.ensemble, float(valid.mean(size.candidate.values))) for size in found),
    ]


def _judged(
    rows: list[ShrinkRow],
    found: Sequence[Size],
    valid: Evaluator,
    judge: Evaluator | None,
    rule: Acceptance,
    judging: Judging,
) -> list[ShrinkRow]:
    """The rows with a proof for every size, and whether it and all before it hold."""
    evaluator = valid if judge is None else judge
    full = measured(evaluator, rows[0].ensemble).values
    others = [
        weighted_values(size.unseen, valid.data.query_weights)
        if judge is None
        else measured(judge, size.candidate.ensemble).values
        for size in found
    ]
    name = str(valid.measures[0])
    proofs = [Proof.of(full, values, rule, measure=name, queries=judging) for values in others]
    passed = in_sequence([proof.p_value if proof.holds else 1.0 for proof in proofs], rule.alpha)
    judged = [
        replace(row, proof=proof, accepted=good) for row, proof, good in zip(rows[2:], proofs, passed, strict=True)
    ]
    return [*rows[:2], *judged]


def _tested(rows: Sequence[ShrinkRow], test: Evaluator) -> list[ShrinkRow]:
    """The rows with the measure on test data."""
    means = [measured(test, row.ensemble).mean for row in rows]
    return [
        replace(row, test=mean, test_difference=mean - means[0] if row is not rows[0] else None)
        for row, mean in zip(rows, means, strict=True)
    ]


# What is left to say of the chosen model.


def _note(full: ShrinkRow, chosen: ShrinkRow, how: ShrinkSettings) -> dict[str, Any]:
    """What is left in the metadata of the chosen model: how it came about, and the figures before and after."""
    return {
        "route": chosen.route,
        "n_leaves_before": full.n_leaves,
        "n_trees_before": full.n_trees,
        "valid_before": full.valid,
        "valid_after": chosen.valid,
        "proof": None if chosen.proof is None else chosen.proof.as_dict(),
        "seed": how.seed,
        "version": __version__,
    }
