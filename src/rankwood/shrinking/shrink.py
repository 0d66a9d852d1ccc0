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
            │
            ▼  on demand
          early exit of the chosen model, and its proof                 early_exit
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
from rankwood.evaluation.evaluator import Evaluator, share_of_trees, weighted_values
from rankwood.evaluation.measures import AnyMeasure, parse_measure
from rankwood.evaluation.significance import in_sequence
from rankwood.fitting.outputs import sample_queries
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Judging, Proof
from rankwood.pruning.judging import checked, compared, measured, proof_on, roles_of, timed
from rankwood.scoring.timing import Timing
from rankwood.shrinking.choice import Candidate, Choosers
from rankwood.shrinking.early_exit import LOSS, check_loss, early_exit
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
    exit: bool | float = False,
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
          that is returned is what all of them choose. With fewer than 50 validation queries it is None.
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
    exit : bool or float, default False
        Whether the chosen model gets early exit (`early_exit`), learnt by the queries that chose it; a number is the
        loss that it may have there, 0.0005 unless given. It is judged as all models are, against the input, and dropped
        unless the loss with it is shown to be less than the margin.
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
    early_exit : Lets documents stop early that are too far behind to matter.

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
    target, exit_loss = Target.of(model, leaves, budget_us, factor), _exit_loss(exit)
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

    jury = _Jury(model, on_valid, on_judge, rule, roles.judging)
    by_query = exit_loss is not None or model.exit is not None
    clock = partial(timed, data=valid, by_query=by_query) if measure_speed or budget_us is not None else None
    rows, timings = _measured(_judged(_rows(model, refitted, found, on_valid), found, jury), on_test, clock)
    chosen, reached = target.choose(rows, cost)
    accepted, exit_row = chosen is not rows[0], None
    if accepted and exit_loss is not None:
        place = rows.index(chosen)
        exit_row = _exit_row(chosen, found[place - 2].unseen, choosers, jury, exit_loss)
        (_, exit_row), more = _measured([rows[0], exit_row], on_test, clock)
        rows.insert(place + 1, exit_row)
        timings[place + 1 : place + 1] = more[1:]
        chosen = exit_row if exit_row.accepted else chosen
    # A student that was grown compares the same codes of categories as its teacher.
    known = {name: note for name, note in model.metadata.items() if name == "categories"}
    return ShrinkResult(
        ensemble=chosen.ensemble.with_metadata(shrink=_note(rows[0], chosen, how), **known) if accepted else model,
        accepted=accepted,
        reached=reached or target.is_met(chosen),
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
        exit=exit_row,
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
            if not 1.0 < factor <= model.n_leaves / 2:
                raise RankwoodError(
                    f"factor says how many times fewer leaves: above 1 and, with {model.n_leaves:,} leaves, at most "
                    f"{model.n_leaves // 2:,}, got {factor:g}"
                )
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


def _exit_loss(exit: bool | float) -> float | None:
    """The loss that early exit may have on the queries that it is learnt by; None when it is not asked for."""
    if isinstance(exit, bool):
        return LOSS if exit else None
    check_loss(exit, "exit")
    return float(exit)


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


class _Jury:
    """Queries that judge models against the input, and the rule."""

    def __init__(
        self, model: Ensemble, valid: Evaluator, other: Evaluator | None, rule: Acceptance, judging: Judging
    ) -> None:
        self.valid, self.other, self.rule, self.judging = valid, other, rule, judging
        self.full = measured(other or valid, model).values

    def proof(self, model: Ensemble, unseen: FloatArray) -> Proof:
        """What other queries show of a model; without any, what `unseen` shows.

        `unseen` are values of validation queries, each of what the others chose.
        """
        if self.other is None:
            values = weighted_values(unseen, self.valid.data.query_weights)
        else:
            values = measured(self.other, model).values
        return Proof.of(self.full, values, self.rule, measure=self.valid.names[0], queries=self.judging)


def _judged(rows: list[ShrinkRow], found: Sequence[Size], jury: _Jury) -> list[ShrinkRow]:
    """The rows with a proof for every size, and whether it and all before it hold."""
    proofs = [jury.proof(size.candidate.ensemble, size.unseen) for size in found]
    passed = in_sequence([proof.p_value if proof.holds else 1.0 for proof in proofs], jury.rule.alpha)
    judged = [
        replace(row, proof=proof, accepted=good) for row, proof, good in zip(rows[2:], proofs, passed, strict=True)
    ]
    return [*rows[:2], *judged]


def _measured(
    rows: list[ShrinkRow], test: Evaluator | None, clock: Callable[[list[Ensemble]], Sequence[Timing]] | None
) -> tuple[list[ShrinkRow], list[Timing]]:
    """The rows, of which the input is the first, with the measure on test data and scoring times."""
    if test is not None:
        means = [measured(test, row.ensemble).mean for row in rows]
        rows = [
            replace(row, test=mean, test_difference=mean - means[0] if row is not rows[0] else None)
            for row, mean in zip(rows, means, strict=True)
        ]
    if clock is None:
        return rows, []
    timings = list(clock([row.ensemble for row in rows]))
    return [replace(row, us_per_doc=timing.us_per_doc) for row, timing in zip(rows, timings, strict=True)], timings


def _exit_row(chosen: ShrinkRow, unseen: FloatArray, choosers: Choosers, jury: _Jury, loss: float) -> ShrinkRow:
    """The chosen model with early exit, and its proof.

    Where folds judge, each chooser learns margins by its own queries, and what they change in the fold left out is
    added to the values of what it chose.
    """
    on = jury.valid
    learn = partial(early_exit, measure=on.measures[0], convention=on.convention, loss=loss, n_threads=on.n_threads)
    learnt = [learn(chosen.ensemble, on.data.select_queries(queries)) for queries in choosers.choose]
    plain, *others = (on.evaluate(model).per_query[on.names[0]] for model in (chosen.ensemble, *learnt))
    swift, judges = learnt[0], jury.other or on
    proof = jury.proof(swift, unseen + (choosers.out_of_fold(others) - plain))
    return replace(
        chosen,
        route=f"{chosen.route}, early exit",
        valid=float(on.mean(others[0])),
        ensemble=swift,
        proof=proof,
        accepted=proof.holds and not (swift.exit is None or swift.exit.never),
        trees_evaluated=share_of_trees(swift, judges.data, n_threads=on.n_threads),
    )


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
