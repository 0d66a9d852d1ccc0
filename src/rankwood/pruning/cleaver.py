"""CLEaVER (Lucchese et al. 2016): prune a model at several rates, re-weigh the rest, take the smallest good model.

::

    model      train      validation
      │          │      ┌─────┴───────────────┐
      └────┬─────┴──────┤ chooses             │ judges (half of the queries; of few, each fold in turn)
           ▼            │                     │
    the leaf of every document in every tree  │                             outputs
           │                                  │
           ▼                                  │
    line search over the weights of all trees │                             line_search
           │                                  │
           ▼   for every rate                 │
    ┌──► victims: the k trees that a strategy removes                       strategies
    │      │                                  │
    │      ▼   in every variant               │
    └─── survivors re-weighed, or refitted ───┤                             pruner, leaves
                                              ▼
                  accepted: shown to lose less than a margin, on
                  queries that did not choose it                            accept
                                              │
                                              ▼
                  the smallest accepted model, or the full one              result
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from rankwood._version import __version__
from rankwood.data.dataset import Dataset
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator, weighted_values
from rankwood.evaluation.measures import AnyMeasure, MeasureFunction, parse_measure
from rankwood.evaluation.per_query import mean
from rankwood.evaluation.significance import holm
from rankwood.fitting.outputs import needed_bytes, sample_queries
from rankwood.group import ALONE, Group
from rankwood.model.additive import AdditiveModel
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Judging, Proof, Rule, p_difference
from rankwood.pruning.checkpoint import FileHere, KeptBytes, identify_queries, open_notebook
from rankwood.pruning.course import Course, Step, TimeIsUp, coarse_first, deadline_of, plan_steps
from rankwood.pruning.judging import FOLDS, Measured, checked, compared, measured, proof_on, roles_of, timed
from rankwood.pruning.notebook import Arrays, Notebook
from rankwood.pruning.pruner import Pruned, Pruner, PruningSettings, Variant, checked_variants
from rankwood.pruning.result import CleaverResult, Row
from rankwood.pruning.strategies import Chooser, Strategy
from rankwood.training.checkpoint import Identity, identify_settings

PLENTY = 1000  # validation queries of which half are set aside to judge by; fewer judge fold by fold
OF_SHARES = ("line-search", "refit")  # variants of several processes unless they are given
OF_ANY_MODEL = ("line-search", "gradient")  # variants that change weights only
RATES = tuple(round(0.1 * i, 1) for i in range(1, 10))


def cleaver(
    model: Any,
    train: Any,
    valid: Any,
    *,
    test: Any = None,
    judge: Any = "auto",
    measure: AnyMeasure = "nDCG@10",
    convention: str | Convention = "rankwood",
    strategy: str | Strategy = "quality-loss",
    rates: Sequence[float] = RATES,
    accept: Rule | Acceptance = "non-inferior",
    variants: Variant | Sequence[Variant] | None = None,
    settings: PruningSettings | None = None,
    checkpoint: str | os.PathLike[str] | KeptBytes | None = None,
    timeout: float | None = None,
    n_threads: int | None = None,
    progress: Callable[[float, float], None] | None = None,
    time_left: Callable[[float | None], None] | None = None,
    group: Group = ALONE,
    client: Any = None,
    shuffle: bool = False,
) -> CleaverResult:
    """Make a tree ranker smaller: the smallest of several pruned models that is shown to lose less than a margin.

    Works on any Ensemble, whoever trained it. Unless a smaller model is accepted the result is the input itself, and
    `result.accepted` says so. `result.proof` says what was shown, on which queries, and how many would do where they
    are too few.

    Parameters
    ----------
    model : Ensemble, fitted ranker or AdditiveModel
        The model to prune. With an `AdditiveModel` the data sets hold the predictions of its members, only weights
        are searched, and nothing is timed.
    train : Dataset
        Data that weights are searched on.
    valid : Dataset
        Data that chooses the victims, which are the trees that are removed, and the best iteration of a search; models
        are judged on it, too.
    test : Dataset or None, default None
        Data that is only measured: `result.test` compares the result with the input there, and `result.is_loss` says
        whether it is significantly worse.
    judge : Dataset, float, "auto", "folds" or None, default "auto"
        Queries that judge models, because those that chose victims and weights are biased in their favour.

        - "auto": half of the validation queries are set aside when there are 1,000 or more, else "folds".
        - "folds": every fifth of the validation queries judges models that the other four fifths chose, made for that
          alone; the models returned are those that all validation queries chose. With fewer than 50 validation
          queries it is None.
        - a share of the validation queries, or other data: these queries choose nothing.
        - None: validation data judges what it chose, as in the paper. Nothing can be shown so, and the rule
          "non-inferior" accepts nothing.

        With the rules "quality" and "not-significant" a model must be as good there *and* on all validation data.
    measure : str, Measure or callable, default "nDCG@10"
        Measure that must not get worse; also a function of labels, scores and offsets of queries, see
        `MeasureFunction`.
    convention : str or Convention, default "rankwood"
        Convention of the measure.
    strategy : str or callable, default "quality-loss"
        Which trees go: "quality-loss", "quality-loss-greedy", "score-loss", "low-weights", "skip", "last", "random",
        or a function (outputs, weights, queries, k) that returns the numbers of the trees that stay.
    rates : sequence of float, default (0.1, 0.2, ..., 0.9)
        Shares of the trees to remove; each gives a row of the table for every variant.
    accept : {"non-inferior", "quality", "not-significant"} or Acceptance, default "non-inferior"
        Rule that a smaller model must pass: it is shown to lose less than a margin of 0.005; or its measure is not
        lower, as in the paper; or not significantly so. `Acceptance` sets other margins and levels.
    variants : str, sequence of str or None, default None
        How the trees that stay are re-weighed; all are tried at every rate. None: "line-search", "refit" and "distil",
        the last of which is left out where several processes or a cluster prune.

        - "line-search": the paper's line search over their weights.
        - "refit": the same, then leaf values fitted to labels.
        - "distil": the trees with the smallest share in scores go, whatever the strategy, and the leaf values of the
          others are fitted to the scores of the full model. Labels have no part in it.
        - "gradient": a line search that starts from Newton steps on LambdaMART's gradients.
    settings : PruningSettings or None, default None
        What is seldom changed: the data by which victims are chosen, how to search and fit, limits, seed.
    checkpoint : path or None, default None
        File that finished searches are kept in, and the one under way; it is gone on from when it exists. The result is
        the very one of a pruning that was not stopped. Other data, another model or other settings are an error; other
        rates, variants and rules are not.
    timeout : float or None, default None
        Seconds after which the search ends: of the models there are by then, the smallest accepted one is the result,
        and `result.timed_out` says so. Rates are tried so that the first of them are spread; a fit that is under way,
        and what is measured of the models in the end, may take a little longer. None: no limit.
    n_threads : int or None, default None
        Threads; all CPUs when None.
    progress : callable or None, default None
        Called now and then with the number of searches done, fractions included, and their number in all.
    time_left : callable or None, default None
        Called before `progress` with the seconds that the other searches will take, as measured on those done; with
        None as long as some kind of them was not measured.
    group : Group
        Processes that prune the same model together: each calls this with its share of every data set, consecutive
        whole queries in the order of ranks, and gets the result that one process with all the data would get. Nothing
        is timed there, the variant "distil" is left to one process, and the strategy must be one of those named.
    client : distributed.Client or None, default None
        Prune on the workers of this Dask cluster, which are such a group. Each data set may then also be a Dask
        DataFrame, a list of delayed partitions, a folder or files, or a tuple of Dask arrays `(X, y, qid)` or
        `(X, y, qid, weights)`. Models are timed in this process.
    shuffle : bool, default False
        Whether rows of a query may stand apart in the data of a cluster; they are moved together.

    Returns
    -------
    CleaverResult
        The smallest accepted model, `ensemble`, and the table of all models that were tried, `rows`.

    See Also
    --------
    grow_and_prune : Trains and prunes by turns, for a model of a given size.

    Notes
    -----
    What "folds" shows is true of the procedure: pruned so, with four fifths of these validation queries choosing, the
    model loses less than the margin on other queries, mean over the five models of a rate and variant. The model that
    is returned had all of them to choose by, and is itself measured on no query that had no part in it. Values of
    queries of one fold depend on each other through the model they share, so that the level of the test is approximate.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=15, n_features=6).split(0.6)
    >>> model = rw.LambdaMART(n_trees=20, n_leaves=6, learning_rate=0.2).fit(train).ensemble_
    >>> rule, settings = rw.Acceptance(margin=0.2), rw.PruningSettings(measure_speed=False)
    >>> result = rw.cleaver(model, train, valid, judge=0.5, rates=(0.3, 0.6), accept=rule, settings=settings)
    >>> result.ensemble.n_trees < 20, result.proof.holds, result.proof.n_queries
    (True, True, 12)
    """
    model = getattr(model, "ensemble_", model)
    how, rule, deadline = PruningSettings.of(settings), Acceptance.of(accept), deadline_of(timeout)
    kept = checkpoint if checkpoint is None or isinstance(checkpoint, KeptBytes) else FileHere(checkpoint)
    is_spread = group.size > 1 or client is not None
    if isinstance(model, AdditiveModel):
        how = replace(how, measure_speed=False)
    plan = _Plan.of(model, rates, variants, strategy, how.seed, is_spread=is_spread)
    if client is not None:
        parse_measure(measure)  # what is none is refused before data is read
        plan.chooser()
        prune = partial(
            cleaver,
            model,
            measure=measure,
            convention=convention,
            strategy=strategy,
            rates=plan.rates,
            accept=rule,
            variants=plan.variants,  # type: ignore[arg-type]
            settings=replace(how, measure_speed=False),
        )
        data = {"train": train, "valid": valid, "test": test, "judge": judge}
        result, some = _on_cluster(client, model, prune, data, n_threads=n_threads, progress=progress,
                                   time_left=time_left, kept=kept, deadline=deadline, shuffle=shuffle)  # fmt: skip
        return _timed(result, some) if how.measure_speed else result
    bind = partial(Evaluator, measures=parse_measure(measure), convention=convention, n_threads=n_threads, group=group)
    roles = roles_of(checked(valid, "valid"), judge, plenty=PLENTY, seed=how.seed, group=group)
    sample = partial(sample_queries, max_queries=how.max_queries, seed=how.seed, group=group)
    searched, chooses = sample(checked(train, "train")), sample(roles.chooses)
    if not isinstance(parse_measure(measure), MeasureFunction):
        _check_tells_apart(valid, group)
    folds = [(sample(data), fold) for data, fold in roles.folds]
    beside = [data for data, _ in folds[:1]]  # kept at the same time; folds take turns
    chooser, by_query = plan.chooser(), partial(bind, by_query=True)
    pruner = Pruner.of(model, by_query(searched), by_query(chooses), chooser, how, beside=beside)
    on_valid = bind(valid)
    on_judge, on_test = (None if data is None else bind(data) for data in (roles.judges, test))
    for evaluator in filter(None, (on_valid, on_judge, on_test)):
        evaluator.evaluate(model)  # data that does not suit the model is refused before the long search

    data = {"training": train, "validation": valid}
    identity = {} if kept is None else _identity(pruner, data, strategy, judge, group)
    steps, notebook = plan.steps(pruner.train.outputs.n_trees, len(folds)), open_notebook(kept, identity, group)
    pruner.course = Course(steps, notebook, progress=progress, time_left=time_left, deadline=deadline, group=group)
    made = _made(pruner, plan, [(by_query(data), bind(fold)) for data, fold in folds])
    rows, values = _measured(_table(pruner, made), on_valid)
    if on_judge is not None:
        values = [measured(on_judge, row.ensemble) for row in rows]
    elif folds:
        values = _out_of_fold(model, [bind(fold) for _, fold in folds], made)
    rows = _judged(rows, values, rule, str(pruner.valid.queries.measure), roles.judging)
    rows = rows if on_test is None else _tested(rows, on_test)
    chosen = _smallest_accepted(rows)
    accepted, note = chosen is not rows[0], _note(pruner, rule, rows[0], chosen, made)
    result = CleaverResult(
        ensemble=chosen.ensemble.with_metadata(cleaver=note) if accepted else model,
        accepted=accepted,
        chosen=chosen,
        rows=tuple(rows),
        measure=str(pruner.valid.queries.measure),
        convention=pruner.valid.queries.evaluator.convention,
        strategy=pruner.chooser.name,
        rule=rule,
        judging=roles.judging,
        timed_out=made.timed_out,
        rates_left=made.rates_left,
        needed_bytes=needed_bytes(model, group.total(sum(data.n_docs for data in (searched, chooses, *beside)))),
        test=compared(model, chosen.ensemble, on_test) if accepted and on_test is not None else None,
        test_proof=proof_on(on_test, model, chosen.ensemble, rule) if accepted and on_test is not None else None,
    )
    return _timed(result, valid) if how.measure_speed and not is_spread else result


def _on_cluster(
    client: Any, model: Any, prune: Callable[..., CleaverResult], data: dict[str, Any], **how: Any
) -> tuple[CleaverResult, Dataset]:
    """The result of a cluster's workers, and some validation data; `how` are fields of an `Order`."""
    from rankwood.pruning.on_cluster import Order, prune_on_cluster

    judge, copies = data["judge"], 1
    if judge is None or isinstance(judge, (int, float)) or (isinstance(judge, str) and judge in ("auto", "folds")):
        prune, copies = partial(prune, judge=data.pop("judge")), FOLDS if judge == "folds" else 1
    given = {role: one for role, one in data.items() if one is not None}
    result, some = prune_on_cluster(client, Order(prune, model, given, copies, **how))
    return result if result.accepted else replace(result, ensemble=model), some


def _identity(pruner: Pruner, data: dict[str, Dataset], strategy: str | Strategy, judge: Any, group: Group) -> Identity:
    """Everything that the steps of a pruning depend on; rates, variants and rules only say which there are."""
    parts = {f"{role} data": identify_queries(one, group) for role, one in data.items()}
    model, queries = pruner.model, pruner.valid.queries
    of_model = model.fingerprint() if isinstance(model, Ensemble) else f"{model.weights.tolist()} {model.base}"
    settled = {
        "measure": str(queries.measure),
        "convention": queries.evaluator.convention,
        "strategy": strategy,
        "settings": replace(pruner.settings, measure_speed=True, max_memory=None),
        "queries to judge by": "other data" if isinstance(judge, Dataset) else judge,
    }
    return {"model": of_model, **parts, **identify_settings(settled)}


# Inputs: which data chooses and which judges, and how many trees go.


def _check_for_group(variants: Sequence[str], strategy: str | Strategy) -> None:
    """Refuse what several processes cannot do together."""
    if "distil" in variants:
        raise RankwoodError(
            "the variant 'distil' needs all documents in one process: leave it out where several prune together, "
            "variants=('line-search', 'refit')"
        )
    if not isinstance(strategy, str):
        raise RankwoodError(
            "a strategy of your own would see the documents of one process only: name one of rankwood's where several "
            "prune together"
        )


def _check_tells_apart(valid: Dataset, group: Group) -> None:
    """Refuse validation data in which no query has documents of different labels."""
    labels, n_queries = valid.y, valid.n_queries
    highest, lowest = np.full(n_queries, -np.inf), np.full(n_queries, np.inf)
    np.maximum.at(highest, valid.queries.index, labels)
    np.minimum.at(lowest, valid.queries.index, labels)
    if group.total(valid.n_docs) and not group.total(int((highest > lowest).sum())):
        raise DataError(
            "no query of the validation data has documents of different labels, so any model is as good as any other "
            "there: give other data"
        )


def checked_rates(rates: Sequence[float]) -> list[float]:
    """Shares of the trees to remove, each once, in increasing order."""
    try:
        shares = sorted({float(rate) for rate in ([rates] if isinstance(rates, (int, float)) else rates)})
    except (TypeError, ValueError):
        raise RankwoodError(f"rates must be numbers from 0 to below 1, got {rates!r}") from None
    if not shares or not 0.0 <= shares[0] <= shares[-1] < 1.0:
        raise RankwoodError(f"rates are shares of the trees to take out, from 0 to below 1, got {list(rates)}")
    return shares


def _numbers_of_victims(rates: Sequence[float], n_trees: int) -> list[int]:
    """Number of trees to remove at every rate; one tree at least stays."""
    return [min(round(rate * n_trees), max(n_trees - 1, 0)) for rate in rates]


# The search: a pruned model for every rate and variant.


@dataclass(frozen=True)
class _Plan:
    """Models to make whatever data chooses: shares and numbers of trees that go, variants, and the strategy."""

    rates: Sequence[float]
    counts: Sequence[int]
    variants: tuple[str, ...]
    strategy: str | Strategy
    seed: int

    @classmethod
    def of(
        cls,
        model: Any,
        rates: Sequence[float],
        variants: Variant | Sequence[Variant] | None,
        strategy: str | Strategy,
        seed: int,
        *,
        is_spread: bool,
    ) -> _Plan:
        """The plan for a model, of what is possible with it; `is_spread`: by several processes."""
        by_default = OF_SHARES if is_spread else (*OF_SHARES, "distil")
        names = checked_variants(by_default if variants is None else variants)  # type: ignore[arg-type]
        if isinstance(model, AdditiveModel):
            names = tuple(name for name in names if name in OF_ANY_MODEL)
            if not names:
                raise RankwoodError(
                    f"an additive model has no leaves to fit: its variants are {', '.join(OF_ANY_MODEL)}"
                )
        shares = checked_rates(rates)
        if is_spread:
            _check_for_group(names, strategy)
        return cls(shares, _numbers_of_victims(shares, getattr(model, "n_trees", 0)), names, strategy, seed)

    @property
    def in_order(self) -> list[int]:
        """The numbers of victims, each once, in the order in which they are tried."""
        return list(dict.fromkeys(self.counts[number] for number in coarse_first(len(self.counts))))

    def steps(self, n_trees: int, n_folds: int) -> list[Step]:
        """All steps of the plan."""
        chooses = self.chooser().goes_by_weights
        return plan_steps(self.in_order, self.variants, n_trees, n_folds=n_folds, chooses=chooses)

    def chooser(self) -> Chooser:
        """The strategy, with nothing chosen yet."""
        return Chooser(self.strategy, max(self.counts), seed=self.seed)


@dataclass
class _Made:
    """The models that there was time for.

    Parameters
    ----------
    plan : _Plan
        What was to be made.
    models : dict from int to list of Pruned
        By the number of victims, those of every variant.
    unseen : dict from int to list of dicts
        By the number of victims, for every fold, the values of its queries with what the other folds chose, by variant.
    timed_out : bool
        Whether the time was up before all were made.
    """

    plan: _Plan
    models: dict[int, list[Pruned]] = field(default_factory=dict)
    unseen: dict[int, list[Arrays]] = field(default_factory=dict)
    timed_out: bool = False

    def __iter__(self) -> Iterator[tuple[float, int, Pruned]]:
        """Rate, number of victims and model, ordered by rate."""
        for rate, k in zip(self.plan.rates, self.plan.counts, strict=True):
            for pruned in self.models.get(k, ()):
                yield rate, k, pruned

    @property
    def rates_left(self) -> tuple[float, ...]:
        """Rates of which not all variants were tried."""
        of_rate = zip(self.plan.rates, self.plan.counts, strict=True)
        return tuple(rate for rate, k in of_rate if len(self.models.get(k, ())) < len(self.plan.variants))


def _made(pruner: Pruner, plan: _Plan, folds: Sequence[tuple[Evaluator, Evaluator]]) -> _Made:
    """Every model of the plan, and what folds say of it; fewer when the time is up.

    `folds` are pairs of the data that chooses and the fold that judges. Folds take turns at every number of victims, so
    that what was made before the time was up can be judged.
    """
    made = _Made(plan)
    pruner.course.skip(_known_of_folds(pruner.course.notebook, plan, len(folds)))
    try:
        for k in plan.in_order:
            made.models[k] = []
            for pruned in pruner.prune(k, plan.variants):
                made.models[k].append(pruned)
            made.unseen[k] = [_unseen(pruner, plan, k, part, *fold) for part, fold in enumerate(folds, start=1)]
        pruner.course.finish()
    except TimeIsUp:
        made.timed_out = True
        made.models = {k: models for k, models in made.models.items() if k in made.unseen or not folds}
    finally:
        pruner.course.notebook.save()
    return made


def _unseen(pruner: Pruner, plan: _Plan, k: int, part: int, chooses: Evaluator, fold: Evaluator) -> Arrays:
    """Values of the queries of a fold with the models that the other folds choose, by variant."""
    notebook, name, (measure,) = pruner.course.notebook, f"{part} {k}", fold.names
    known = notebook.step(name, dict)
    missing = tuple(variant for variant in plan.variants if variant not in known)
    if missing:
        other = pruner.chosen_by(chooses, plan.chooser(), part)
        found = {one.variant: fold.evaluate(other.ensemble(one)).per_query[measure] for one in other.prune(k, missing)}
        known = {**known, **found}
        notebook.note(name, known)
        notebook.forget(f"{name} ")  # the models are not needed any more
    return known


def _known_of_folds(notebook: Notebook, plan: _Plan, n_folds: int) -> list[Step]:
    """Steps of folds that need not be done, because values of all that they lead to are known."""
    known = [
        (part, k)
        for part in range(1, n_folds + 1)
        for k in plan.counts
        if f"{part} {k}" in notebook and notebook.step(f"{part} {k}", dict).keys() >= set(plan.variants)
    ]
    return [step for step in plan.steps(0, n_folds) if (step.part, step.k) in known and step.kind != "choose"]


# The table: each step fills in columns.


def _table(pruner: Pruner, made: _Made) -> list[Row]:
    """A row for the full model, then one for every pruned model; `valid` is that of the queries that chose."""
    model: Any = pruner.model
    weights = pruner.original
    train, valid = pruner.train.quality(weights), pruner.valid.quality(weights)
    rows = [Row(rate=0.0, variant="input", n_trees=model.n_trees, train=train, valid=valid, ensemble=model)]
    for rate, _, pruned in made:
        ensemble = pruner.ensemble(pruned)
        rows.append(Row(rate, pruned.variant, ensemble.n_trees, pruned.train, pruned.valid, ensemble))
    return rows


def _measured(rows: Sequence[Row], valid: Evaluator) -> tuple[list[Row], list[Measured]]:
    """The rows with the measure on all validation data, and its values."""
    values = [measured(valid, row.ensemble) for row in rows]
    return [replace(row, valid=found.mean) for row, found in zip(rows, values, strict=True)], values


def _out_of_fold(model: Any, folds: Sequence[Evaluator], made: _Made) -> list[Measured]:
    """The measure of the full model, then of every model that was made, on queries that did not choose it.

    The values of all folds together are those of all validation queries.
    """
    of_full = [fold.evaluate(model) for fold in folds]
    weights = [found.query_weights for found in of_full if found.query_weights is not None]
    together = np.concatenate(weights) if weights else None
    (name,) = folds[0].names
    values = [np.concatenate([found.per_query[name] for found in of_full])]
    values += [np.concatenate([of_fold[pruned.variant] for of_fold in made.unseen[k]]) for _, k, pruned in made]
    return [Measured(float(mean(one, together)), weighted_values(one, together)) for one in values]


def _judged(
    rows: Sequence[Row], found: Sequence[Measured], rule: Acceptance, measure: str, judging: Judging
) -> list[Row]:
    """The rows with p-values against the full model, what is shown of each, and the rule's decision.

    `found` is the measure of every row on the queries that judge.
    """
    if judging != "choosing":
        rows = [replace(row, judged=one.mean) for row, one in zip(rows, found, strict=True)]
    (full, *smaller), (full_values, *others) = rows, [one.values for one in found]
    p_values = [p_difference(full_values, one) for one in others]
    corrected = [None] * len(smaller) if None in p_values else [float(p) for p in holm(p_values)]
    proofs: Sequence[Proof | None] = [None] * len(smaller)
    if rule.margin is not None:
        proofs = Proof.of_each(full_values, others, rule, measure=measure, queries=judging)
    judged = []
    for row, p, p_corrected, proof in zip(smaller, p_values, corrected, proofs, strict=True):
        better = row.valid >= full.valid and row.worth >= full.worth
        row = replace(row, p_valid=p, p_holm=p_corrected, proof=proof, accepted=rule.passes(better, p, proof))
        judged.append(row if proof is None else replace(row, p_inferior=proof.p_value))
    return [full, *judged]


def _tested(rows: Sequence[Row], test: Evaluator) -> list[Row]:
    """The rows with the measure on test data, and p-values against the full model there."""
    full, *others = [measured(test, row.ensemble) for row in rows]
    smaller = [
        replace(row, test=found.mean, p_test=p_difference(full.values, found.values))
        for row, found in zip(rows[1:], others, strict=True)
    ]
    return [replace(rows[0], test=full.mean), *smaller]


def _timed(result: CleaverResult, data: Dataset) -> CleaverResult:
    """The result with the scoring time of the full model divided by that of every row."""
    timings = timed([row.ensemble for row in result.rows], data)
    full = timings[0].us_per_doc
    rows = [replace(row, speed_up=full / one.us_per_doc) for row, one in zip(result.rows, timings, strict=True)]
    chosen = next(new for row, new in zip(result.rows, rows, strict=True) if row is result.chosen)
    return replace(result, rows=tuple(rows), chosen=chosen, timings=timings)


# The choice, and what is noted of it.


def _smallest_accepted(rows: Sequence[Row]) -> Row:
    """The smallest accepted model that gains something, the better of two of the same size; else the full model."""
    full = rows[0]
    gains = [row for row in rows[1:] if row.accepted and (row.n_trees < full.n_trees or row.worth > full.worth)]
    return min(gains, key=lambda row: (row.n_trees, -row.worth), default=full)


def _note(pruner: Pruner, rule: Acceptance, full: Row, chosen: Row, made: _Made) -> dict[str, Any]:
    """What is left in the metadata of the chosen model: how it was pruned, and the figures before and after."""
    queries, how = pruner.valid.queries, pruner.settings
    return {
        "strategy": "score-loss" if chosen.variant == "distil" else pruner.chooser.name,
        "victims": how.victims,
        "measure": str(queries.measure),
        "convention": queries.evaluator.convention.name,
        "accept": rule.rule,
        "proof": None if chosen.proof is None else chosen.proof.as_dict(),
        "margin": rule.margin,
        "alpha": rule.alpha,
        "rate": chosen.rate,
        "variant": chosen.variant,
        "n_trees_before": full.n_trees,
        "n_trees_after": chosen.n_trees,
        "valid_before": full.valid,
        "valid_after": chosen.valid,
        "search": asdict(how.search),
        "queries": [pruner.train.queries.n_queries, queries.n_queries],
        "seed": how.seed,
        "version": __version__,
        **({"timed_out": True, "rates_left": list(made.rates_left)} if made.timed_out else {}),
    }
