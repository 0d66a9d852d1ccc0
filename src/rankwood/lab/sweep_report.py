"""The report of a sweep: a table of its settings, each compared with the first, and a figure of quality over cost."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.significance import bootstrap_interval, holm, randomisation_test
from rankwood.lab.drawing import Figure, log_axis, pareto_front, style
from rankwood.lab.runs import run_key
from rankwood.lab.study import Report, Runs, Table, counted, interval_text, listed, p_text, query_values, with_spread
from rankwood.lab.workers import in_words
from rankwood.lazily import cached_property
from rankwood.scoring.timing import BATCH
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.lab.sweep import Setting, SweepStudy

# What follows from the runs: every row, a setting pruned or not, against the first one.


SIGNIFICANT = 0.05
Row = tuple[int, str]  # number of a setting, and "model" or "pruned"


@dataclass(frozen=True)
class Contrast:
    """A row against the first, query by query over all folds, each query's mean over seeds."""

    difference: float
    interval: tuple[float, float]
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class SweepResults:
    """The results of all runs of a sweep, and what follows from them."""

    study: SweepStudy
    runs: Runs

    @property
    def rows(self) -> list[Row]:
        """The rows of the main table."""
        return [
            (number, kind)
            for number, setting in enumerate(self.study.settings)
            for kind in (("model", "pruned") if self.study.prunes(setting) else ("model",))
        ]

    def label(self, row: Row) -> str:
        """Name of a row in tables."""
        return self.study.settings[row[0]].label + (", pruned" if row[1] == "pruned" else "")

    def of(self, row: Row) -> list[tuple[int, Mapping[str, Any]]]:
        """The fold and what was measured of a row, for every fold and seed."""
        number, kind = row
        setting = self.study.settings[number]
        found: list[tuple[int, Mapping[str, Any]]] = []
        for fold, seed in itertools.product(self.study.folds, self.study.seeds):
            if self.study.searches:
                final = self.study.final(fold, self.chosen[fold, setting.label], seed)
                found.append((fold, self._by_key[run_key(final)][kind]))
                continue
            training = self.study.training(fold, setting, seed)
            timed = self._by_key[run_key(self.study.timing(training))] if self.study.speed else {}
            times = {"us_per_doc": timed.get(kind), "own_us_per_doc": timed.get("own") if kind == "model" else None}
            found.append((fold, {**self._by_key[run_key(training)][kind], **times}))
        return found

    def on_validation(self, fold: int, candidate: Setting) -> float:
        """The first measure of a candidate of a search on the validation data of a fold."""
        return float(self._by_key[run_key(self.study.searching(fold, candidate))]["valid"])

    @cached_property
    def chosen(self) -> dict[tuple[int, str], Setting]:
        """By fold and label, the candidate that is best on validation data, the first among equals."""
        found = {}
        for fold, setting in itertools.product(self.study.folds, self.study.settings):
            worth = [self.on_validation(fold, candidate) for candidate in setting.candidates] if setting.points else [0]
            found[fold, setting.label] = setting.candidates[int(np.argmax(worth))]
        return found

    @cached_property
    def _by_key(self) -> dict[str, Mapping[str, Any]]:
        return {run_key(config): result for config, result in self.runs}

    def mean(self, row: Row, name: str) -> float | None:
        """Mean over folds and seeds of one of the numbers in their results; None when it was not measured."""
        found: list[Any] = [result.get(name) for _, result in self.of(row)]
        return None if None in found else float(np.mean(found))

    def n_leaves(self, row: Row) -> float | None:
        """Mean number of leaves, one more in every tree than it has nodes."""
        nodes, trees = self.mean(row, "n_nodes"), self.mean(row, "n_trees")
        return None if nodes is None or trees is None else nodes + trees

    def mean_and_interval(self, row: Row, measure: str) -> tuple[float, tuple[float, float]]:
        """Mean over all test queries, and its bootstrap interval."""
        values = self.values(row, measure)
        return float(np.nanmean(values)), _interval(values)

    def library(self, row: Row) -> str | None:
        """The library of a peer and its version, or versions; None of our own learners."""
        found = {result["library"] for _, result in self.of((row[0], "model")) if "library" in result}
        return ", ".join(sorted(found)) or None

    def mean_and_std(self, row: Row, measure: str, part: str = "test") -> tuple[float, float | None]:
        """Mean and standard deviation over folds and seeds of the mean over queries."""
        means = [np.nanmean(_array(result[part][measure])) for _, result in self.of(row)]
        return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else None

    def values(self, row: Row, measure: str) -> FloatArray:
        """Values of the test queries of all folds, each the mean over seeds."""
        return query_values(
            [_array(result["test"][measure]) for fold, result in self.of(row) if fold == number]
            for number in self.study.folds
        )

    @cached_property
    def contrasts(self) -> dict[tuple[Row, str], Contrast]:
        """Every other row against the first, by every measure; Holm's correction is for all of them."""
        found = {}
        first, *others = self.rows
        for measure in self.study.measures:
            base = self.values(first, measure)
            for row in others:
                values = self.values(row, measure)
                test, interval = randomisation_test(base, values), bootstrap_interval(base, values)
                found[row, measure] = (test, (interval.low, interval.high))
        adjusted = holm([test.p_value for test, _ in found.values()])
        return {
            key: Contrast(test.mean_difference, interval, test.p_value, float(p))
            for (key, (test, interval)), p in zip(found.items(), adjusted, strict=True)
        }


# The report: a table of the settings, each against the first, and a figure of quality over cost.


LEGEND_AT_MOST = 12  # points with a name each; more are numbered


def make_report(found: SweepResults) -> Report:
    """Make tables and figures of a sweep whose runs are all done."""
    study = found.study
    return Report(
        title=f"Sweep {study.title}: {study.source.name}",
        summary=_summary(found),
        tables=[
            _compared(found) if study.searches else _main(found),
            *([_contrasts(found)] if len(found.rows) > 1 else []),
            _searched(found) if study.searches else _settings(found),
        ],
        figures=[_figure(found)],
        facts={
            "folds": list(study.folds),
            "seeds": list(study.seeds),
            "data": study.source.name,
            "measures": list(study.measures),
            "convention": study.convention,
            "n_queries": len(found.values(found.rows[0], study.measures[0])),
            "n_points": max((len(setting.points) for setting in study.settings), default=0),
            "rows": [_fact(found, row) for row in found.rows],
        },
    )


def search_report(found: SweepResults) -> Report:
    """Make the table of a search whose final runs are still to be done."""
    study = found.study
    left = {run_key(config) for config in replace(study, chosen=found.chosen).alone()}
    return Report(
        title=f"Search of {study.title}: {study.source.name}",
        summary=f"The search is done. On test data {counted(len(left), 'run')}, which are timed, are left to the same "
        "command without --search-only.",
        tables=[_searched(found)],
        figures=[],
        facts={"folds": list(study.folds), "data": study.source.name, "measure": study.measures[0], "left": len(left)},
    )


def _summary(found: SweepResults) -> str:
    """The outcome in a few sentences."""
    study, measure = found.study, found.study.measures[0]
    best = max(found.rows, key=lambda row: found.mean_and_std(row, measure, "valid")[0])
    text = (
        f"{len(study.settings)} configurations; folds {listed(study.folds)}; seeds {listed(study.seeds)}. Convention "
        f"{Convention.get(study.convention).describe()}. On validation data {found.label(best)} is best by {measure}"
    )
    if best == found.rows[0]:
        return text + ", the first of all."
    contrast = found.contrasts[best, measure]
    return (
        f"{text}; on test data it differs from {found.label(found.rows[0])} by {contrast.difference:+.4f} (95 % "
        f"interval {interval_text(*contrast.interval)}, p {p_text(contrast.p_holm)} after Holm's correction)."
    )


def _compared(found: SweepResults) -> Table:
    """Quality with its interval, size, training time and scoring time of every row of a search."""
    study, rows = found.study, []
    first, *others = study.measures
    # On one thread CPU time is what an idle machine takes, also where this one was busy.
    n_threads = resolve_threads(study.n_threads)
    clock, clock_in_words = ("seconds", "CPU") if n_threads == 1 else ("wall_seconds", "wall-clock")
    for number, row in enumerate(found.rows, start=1):
        mean, (low, high) = found.mean_and_interval(row, first)
        rows.append(
            [
                f"{number}. {found.label(row)}" if _numbered(found) else found.label(row),
                f"{mean:.4f}{_mark(found.contrasts.get((row, first)))}",
                f"{low:.4f} to {high:.4f}",
                *(f"{found.mean_and_interval(row, measure)[0]:.4f}" for measure in others),
                _number(found.mean(row, "n_trees"), 0),
                _number(found.n_leaves(row), 0),
                _number(found.mean(row, clock), 1),
                *([_number(found.mean(row, name), 3) for name in TIMES] if study.speed else []),
            ]
        )
    speed = ["us per document", "its own predict"] if study.speed else []
    timed = (
        f" us per document: one thread, up to {BATCH:,} documents per call, by rankwood in double precision and, where "
        "another library has trained the model, by that library."
    )
    pruned = "" if study.pruning is None else " Of pruned models, they are those of the pruning."
    n_points = max(len(setting.candidates) for setting in study.settings)
    return Table(
        "sweep",
        f"{study.title}: test data, {study.source.name}",
        ["configuration", first, "95 % interval", *others, "trees", "leaves", "training s", *speed],
        rows,
        f"Parameters of each are chosen on validation data, fold by fold, among {counted(n_points, 'point')}. Means "
        "over all test queries with bootstrap intervals over queries. + and -: significantly above or below the first "
        f"(randomisation test over queries, Holm's correction, {SIGNIFICANT:.0%}).{timed if speed else ''} Training "
        f"seconds are {clock_in_words} time on {counted(n_threads, 'thread')}, without the conversion of the data."
        f"{pruned}{_libraries(found)}",
        details=DETAILS,
    )


TIMES = ("us_per_doc", "own_us_per_doc")
DETAILS = ("its own predict", "training s", "nodes", "leaves", "95 % interval")  # what a narrow terminal may do without


def _libraries(found: SweepResults) -> str:
    """A sentence on the versions of other libraries."""
    known = dict.fromkeys(filter(None, map(found.library, found.rows)))
    if not known:
        return ""
    differences = [result.get("own_difference", 0.0) for row in found.rows for _, result in found.of(row)]
    return (
        f" Other libraries: {', '.join(known)}; scores of imported models differ from the library's own by "
        f"{max(differences):.2g} at most."
    )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _searched(found: SweepResults) -> Table:
    """Every point of every search, on validation data, and the folds that took it."""
    study, rows = found.study, []
    for setting in study.settings:
        for candidate in setting.candidates:
            taken = [fold for fold in study.folds if found.chosen[fold, setting.label] == candidate]
            worth = [found.on_validation(fold, candidate) for fold in study.folds] if setting.points else []
            parameters = study.training(study.folds[0], candidate, study.seeds[0])["parameters"]
            valid = f"{np.mean(worth):.4f}" if worth else ""
            rows.append([setting.label, setting.learner, in_words(parameters) or "defaults", valid, listed(taken)])
    return Table(
        "configurations",
        f"Points of the search, and validation data, {study.source.name}",
        ["configuration", "learner", "parameters", f"valid {study.measures[0]}", "taken in folds"],
        rows,
        "The mean over folds; each fold takes its own best.",
    )


def _main(found: SweepResults) -> Table:
    """Quality, size, speed and training time of every row."""
    study, rows = found.study, []
    times = TIMES if any(found.library(row) for row in found.rows) else TIMES[:1]
    for number, row in enumerate(found.rows, start=1):
        cells = [f"{number}. {found.label(row)}" if _numbered(found) else found.label(row)]
        for measure in study.measures:
            cells.append(with_spread(*found.mean_and_std(row, measure)) + _mark(found.contrasts.get((row, measure))))
        cells += [f"{found.mean(row, 'n_trees'):,.0f}", f"{found.mean(row, 'n_nodes'):,.0f}"]
        if study.speed:
            cells += [_number(found.mean(row, name), 3) for name in times]
        rows.append([*cells, f"{found.mean(row, 'seconds'):.2f}"])
    speed = ["us per document", "its own predict"][: len(times)] if study.speed else []
    timed = f" us per document: one thread, up to {BATCH:,} documents per call, double precision." if speed else ""
    pruned = "" if study.pruning is None else " Of pruned models, they are those of the pruning."
    return Table(
        "sweep",
        f"{study.title}: test data, {study.source.name}",
        ["configuration", *study.measures, "trees", "nodes", *speed, "training s"],
        rows,
        "Means over folds and seeds, in brackets the standard deviation between them. + and -: significantly above or "
        f"below the first (randomisation test over queries, Holm's correction, {SIGNIFICANT:.0%}).{timed} Training "
        f"seconds are CPU time of all threads together.{pruned}",
        details=DETAILS,
    )


def _mark(contrast: Contrast | None) -> str:
    """A plus or a minus where a difference is significant."""
    if contrast is None or contrast.p_holm > SIGNIFICANT:
        return ""
    return " +" if contrast.difference > 0 else " -"


def _contrasts(found: SweepResults) -> Table:
    """Differences from the first row, with intervals and p-values."""
    rows = [
        [found.label(row), measure, f"{c.difference:+.4f}", interval_text(*c.interval), p_text(c.p_value),
         p_text(c.p_holm)]
        for (row, measure), c in found.contrasts.items()
    ]  # fmt: skip
    n_queries = len(found.values(found.rows[0], found.study.measures[0]))
    return Table(
        "significance",
        f"Against {found.label(found.rows[0])} on test data, {found.study.source.name}",
        ["configuration", "measure", "difference", "95 % interval", "p", "p (Holm)"],
        rows,
        f"Fisher's randomisation test and bootstrap on the values of {n_queries:,} test queries, each the mean over "
        "seeds. Holm's correction is for all comparisons of this table.",
    )


def _settings(found: SweepResults) -> Table:
    """Parameters of every configuration, and its measures on validation data."""
    study, rows = found.study, []
    for number, setting in enumerate(study.settings):
        parameters = study.training(study.folds[0], setting, study.seeds[0])["parameters"]
        values = [with_spread(*found.mean_and_std((number, "model"), measure, "valid")) for measure in study.measures]
        rows.append([setting.label, setting.learner, in_words(parameters) or "defaults", *values])
    return Table(
        "configurations",
        f"Configurations, and validation data, {study.source.name}",
        ["configuration", "learner", "parameters", *(f"valid {measure}" for measure in study.measures)],
        rows,
    )


def _figure(found: SweepResults) -> Figure:
    """The first measure over the cost of scoring, with the Pareto front."""
    study, measure = found.study, found.study.measures[0]
    cost, unit = ("us_per_doc", "scoring, us per document") if study.speed else ("n_nodes", "nodes of the model")
    costs = [found.mean(row, cost) or 0.0 for row in found.rows]
    # The mean of all queries, as the interval is of it: folds may differ in size.
    means = [float(np.nanmean(found.values(row, measure))) for row in found.rows]
    numbered = _numbered(found)

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        by_cost = sorted(range(len(costs)), key=lambda i: costs[i])
        for number, (row, x, y) in enumerate(zip(found.rows, costs, means, strict=True), start=1):
            low, high = _interval(found.values(row, measure))
            face = {"markerfacecolor": "white"} if row[1] == "pruned" else {}
            label = None if numbered else found.label(row)
            how = style(row[0])
            color = how["color"]
            middle, half = (low + high) / 2, (high - low) / 2
            axes.errorbar(x, middle, half, fmt="none", ecolor=color, alpha=0.5, capsize=3, linewidth=1)
            axes.plot(x, y, linestyle="none", label=label, **how, **face)
            if numbered:  # above the axes, on three lines, so that neighbours do not overlap
                height = 1.015 + 0.045 * (by_cost.index(number - 1) % 3)
                where = axes.get_xaxis_transform()
                axes.text(x, height, str(number), color=color, fontsize=8, ha="center", transform=where)
        front = pareto_front(costs, means)
        if len(front) > 1:
            axes.plot([costs[i] for i in front], [means[i] for i in front], color="black", linewidth=0.8, zorder=0,
                      linestyle="--", label="front")  # fmt: skip
        if min(costs) > 0 and max(costs) > 3 * min(costs):
            log_axis(axes, ",.10g")
            axes.set_xlim(min(costs) / 1.3, max(costs) * 1.3)
        axes.set(xlabel=unit, ylabel=f"{measure} on test data")
        axes.set_title(f"{study.title}, {study.source.name}", pad=44 if numbered else None)
        axes.grid(alpha=0.3)
        if not numbered:
            axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)

    numbers = " Numbers are those of the first table." if numbered else ""
    caption = (
        f"{measure}, the mean over all test queries, over the cost of scoring; bars are 95 % bootstrap intervals over "
        f"queries; dashed: the models that no other surpasses in both.{numbers}"
    )
    return Figure("quality-cost", caption, draw, (9.0, 4.5))


def _numbered(found: SweepResults) -> bool:
    """Whether the figure numbers the rows because they are too many to be named."""
    return len(found.rows) > LEGEND_AT_MOST


def _fact(found: SweepResults, row: Row) -> dict[str, Any]:
    """All numbers of a row, for `results.json`."""
    study = found.study
    by_measure = {}
    for measure in study.measures:
        mean, std = found.mean_and_std(row, measure)
        contrast = found.contrasts.get((row, measure))
        by_measure[measure] = {
            "test": mean,
            "std": std,
            "interval": list(found.mean_and_interval(row, measure)[1]),
            "mean": found.mean_and_interval(row, measure)[0],
            "valid": found.mean_and_std(row, measure, "valid")[0],
            "contrast": None if contrast is None else {**contrast.__dict__, "interval": list(contrast.interval)},
        }
    setting = study.settings[row[0]]
    names = ("n_trees", "n_nodes", "us_per_doc", "own_us_per_doc", "own_difference", "seconds", "wall_seconds")
    numbers: dict[str, Any] = {name: found.mean(row, name) for name in names} | {"n_leaves": found.n_leaves(row)}
    about = {"configuration": setting.label, "pruned": row[1] == "pruned", "learner": setting.learner}
    if study.searches:
        numbers["chosen"] = {fold: dict(found.chosen[fold, setting.label].parameters) for fold in study.folds}
    return {
        **about,
        "library": found.library(row),
        "parameters": dict(setting.parameters),
        **numbers,
        "measures": by_measure,
    }


def _interval(values: FloatArray) -> tuple[float, float]:
    """Bootstrap interval of the mean over the queries that have a value."""
    known = values[~np.isnan(values)]
    interval = bootstrap_interval(np.zeros(len(known)), known)
    return interval.low, interval.high


def _array(values: Any) -> FloatArray:
    """Values from JSON as an array, None as NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
