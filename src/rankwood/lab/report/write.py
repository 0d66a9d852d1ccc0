"""`write_report`: models measured, compared, timed and described on data, written as an HTML page and figures."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.atomic import atomic_write, check_writable
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FeatureMatrix, IndexArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import (
    Evaluation,
    aligned_features,
    difference_interval,
    evaluate,
    mean_interval,
    weighted_values,
)
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.formats.registry import load_model, widen
from rankwood.lab.drawing import check_figures, write_figure
from rankwood.lab.report.facts import (
    Difference,
    Estimate,
    ModelFacts,
    Pair,
    ReportFacts,
    compare_pairs,
    curves_of,
    describe_anatomy,
    settings_of,
    shared_bins,
)
from rankwood.lab.report.page import first_pair, render_page
from rankwood.lab.report.reasons import Explained, with_reasons
from rankwood.matrix import column_order
from rankwood.model.ensemble import Ensemble
from rankwood.model.file import model_bytes
from rankwood.pruning.accept import MARGIN, Acceptance, Proof
from rankwood.scoring.engines import get_engine
from rankwood.scoring.timing import Budget, Timing, speed_up, time_models, warn_if_busy
from rankwood.system import environment

MEASURES = ("nDCG@10", "ERR", "AP")
TITLE = "Tree rankers compared"
OnStep = Callable[[str, int, int], None]  # (what is done, steps done so far, steps in all)
Curves = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]  # model, data set, measure: value per iteration


def write_report(
    path: str | os.PathLike[str],
    models: Mapping[str, Any],
    data: Dataset,
    *,
    baseline: str | None = None,
    measures: str | Measure | Sequence[str | Measure] = MEASURES,
    convention: str | Convention | None = None,
    margin: float = MARGIN,
    curves: Curves | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = TITLE,
    figures: str | os.PathLike[str] | None = None,
    engine: str = "auto",
    n_threads: int | None = None,
    on_step: OnStep | None = None,
) -> list[Path]:
    """Write a report of models on data as one HTML file that needs no network, and perhaps its figures for papers.

    Parameters
    ----------
    path : path-like
        The HTML file to write.
    models : mapping of str to model
        Models by name: an Ensemble, a fitted learner, a model file, or whatever else `load_model` takes.
    data : Dataset
        Held-out data, with labels and queries.
    baseline : str, optional
        Name of the model that the others are compared with; the first unless given.
    measures : str, Measure or sequence of them, default ("nDCG@10", "ERR", "AP")
        What to measure; the first is that of the headline.
    convention : str or Convention, optional
        The convention of the measures; rankwood's own unless given.
    margin : float, default 0.005
        Loss of a measure that is to be ruled out for a model to count as as good as the baseline.
    curves : mapping, optional
        Learning curves by name of the model, in the form of `evals_result_`. Learners and models of rankwood bring
        their own.
    settings : mapping, optional
        Settings to show, by name of the model. Models of rankwood bring their own.
    title : str, default "Tree rankers compared"
        Title of the page.
    figures : path-like, optional
        Folder for every figure as PNG and SVG, which needs matplotlib.
    engine : str, default "auto"
        Engine to time, on one thread; "auto" is the fastest that needs no compiler.
    n_threads : int, optional
        Threads for measuring quality; all CPUs unless given.
    on_step : callable, optional
        Called with what is being done, the number of steps done, and the number of all.

    Returns
    -------
    list of Path
        The files that were written, the page first.

    Examples
    --------
    >>> import rankwood as rw, tempfile, os
    >>> data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=3)
    >>> stump = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], n_features=3)
    >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
    >>> [written.name for written in rw.write_report(path, {"stump": stump}, data)]
    ['report.html']
    """
    page = Path(path)
    check_writable(page)
    if figures is not None:
        check_figures()
    facts = gather(
        models,
        data,
        baseline=baseline,
        measures=measures,
        convention=convention,
        margin=margin,
        curves=curves,
        settings=settings,
        title=title,
        engine=engine,
        n_threads=n_threads,
        on_step=on_step,
    )
    written = [page]
    with atomic_write(page, "w") as file:
        file.write(render_page(facts))
    if figures is not None:
        from rankwood.lab.report.figures import report_figures

        folder = Path(figures)
        folder.mkdir(parents=True, exist_ok=True)
        drawn = report_figures(facts)
        for number, figure in enumerate(drawn, start=1):
            written += write_figure(figure, folder)
            if on_step is not None:
                on_step("drawing", number, len(drawn))
    return written


# Measure, compare, time and describe models: everything that a report shows, as plain numbers.


def gather(
    models: Mapping[str, Any],
    data: Dataset,
    *,
    baseline: str | None = None,
    measures: str | Measure | Sequence[str | Measure] = MEASURES,
    convention: str | Convention | None = None,
    margin: float = MARGIN,
    curves: Curves | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = TITLE,
    engine: str = "auto",
    n_threads: int | None = None,
    on_step: OnStep | None = None,
    budget: Budget | None = None,
) -> ReportFacts:
    """Measure, compare, time and describe models; see `write_report` for the arguments.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=3)
    >>> stump = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], n_features=3)
    >>> facts = gather({"stump": stump}, data, measures="nDCG@10")
    >>> facts.base.quality["nDCG@10"].value == rw.evaluate(stump, data)["nDCG@10"]
    True
    """
    given = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    names = list(dict.fromkeys(str(parse_measure(measure)) for measure in given))
    if not names:
        raise RankwoodError("a report needs at least one measure, such as nDCG@10")
    if engine != "auto":
        get_engine(engine)
    rule = Acceptance(margin=margin)
    subjects = _subjects(models, data, curves, settings)
    base = _baseline_number([one.name for one in subjects], baseline)
    n_pairs = len(subjects) * (len(subjects) - 1) // 2
    steps = _Steps(on_step, 5 * len(subjects) + n_pairs * len(names))

    evaluations = []
    for one in subjects:
        evaluations.append(one.evaluate(data, names, convention, n_threads))
        steps.advance(f"evaluating {one.name}")
    timings = steps.timing([(one.model, one.X) for one in subjects], engine, budget)
    warn_if_busy(timings)
    pairs = compare_pairs(
        evaluations,
        [one.scores for one in subjects],
        data,
        names,
        n_threads=n_threads,
        on_pair=lambda: steps.advance("comparing"),
    )
    differences = _differences(evaluations, base, names, pairs, rule, steps, n_threads)
    topologies = [one.model.topology() for one in subjects]
    depth_bins = shared_bins([topology.depths for topology in topologies])
    leaf_bins = shared_bins([topology.leaves for topology in topologies])
    facts = []
    for number, (one, topology) in enumerate(zip(subjects, topologies, strict=True)):
        quality = {name: _estimate(evaluations[number], name, n_threads) for name in names}
        facts.append(
            ModelFacts(
                name=one.name,
                n_trees=topology.n_trees,
                n_nodes=topology.n_nodes,
                n_leaves=topology.n_leaves,
                mean_depth=topology.mean_depth,
                max_depth=topology.max_depth,
                path_length=topology.path_length,
                n_features_used=topology.n_features_used,
                n_bytes=len(model_bytes(one.model)),
                quality=quality,
                difference=differences[number],
                timing=timings[number],
                speed_up=Estimate(1.0) if number == base else Estimate(*speed_up(timings[base], timings[number])),
                anatomy=describe_anatomy(one.model, topology, one.columns, data.n_features, depth_bins, leaf_bins),
                curves=curves_of(one.curves, one.model),
                settings=settings_of(one.settings, one.model),
            )
        )
        steps.advance(f"describing {one.name}")
    found = ReportFacts(
        title=title,
        made=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        data=_describe_data(data),
        measures=names,
        convention=evaluations[0].convention.describe(),
        baseline=base,
        margin=margin,
        models=facts,
        pairs=pairs,
        features=_feature_names(data, [one.model for one in subjects]),
        depth_bins=depth_bins,
        leaf_bins=leaf_bins,
        environment=environment(n_threads),
        numbered=data.feature_names is None and all(one.model.feature_names is None for one in subjects),
    )
    return with_reasons(
        found,
        [Explained(one.model, one.X, one.columns) for one in subjects],
        first_pair(found),
        n_threads=n_threads,
        on_model=lambda name: steps.advance(f"explaining {name}"),
    )


@dataclass
class _Subject:
    """A model with its scores, curves and settings, and the data in the order of its features."""

    name: str
    model: Ensemble
    X: FeatureMatrix
    columns: IndexArray  # column of the data, by feature of the model
    curves: Any
    settings: Mapping[str, Any] | None
    scores: AnyArray

    def evaluate(
        self, data: Dataset, measures: list[str], convention: str | Convention | None, n_threads: int | None
    ) -> Evaluation:
        """Score the data, keep the scores, and measure them."""
        self.scores = self.model.score(self.X, qid=data.queries.index, n_threads=n_threads)
        return evaluate(self.scores, data, measures, convention=convention or "rankwood", n_threads=n_threads)


def _subjects(
    models: Mapping[str, Any], data: Dataset, curves: Curves | None, settings: Mapping[str, Mapping[str, Any]] | None
) -> list[_Subject]:
    """Load the models, and raise an error for arguments that do not go together."""
    if not isinstance(models, Mapping):
        raise RankwoodError(f"models must be a mapping from names to models, got {type(models).__name__}")
    if not models:
        raise RankwoodError("a report needs at least one model")
    if not isinstance(data, Dataset):
        raise DataError(f"a report needs a Dataset, with labels and queries, got {type(data).__name__}")
    if data.n_docs == 0:
        raise DataError("the data has no documents: there is nothing to report on")
    for what, by_name in (("curves", curves), ("settings", settings)):
        unknown = [str(name) for name in by_name or {} if name not in models]
        if unknown:
            raise RankwoodError(f"{what} are given for {unknown[0]!r}, which is none of the models")
    return [_subject(name, models[name], data, curves, settings) for name in models]


def _subject(name: Any, given: Any, data: Dataset, curves: Any, settings: Any) -> _Subject:
    """Load one model, and raise an error when the data does not fit it."""
    model = widen(load_model(given), data.n_features)
    try:
        X = aligned_features(model, data)
        order = column_order(data.feature_names, model.feature_names)
    except DataError as error:
        raise DataError(f"model {str(name)!r} does not fit the data: {error}") from None
    if X.shape[1] != model.n_features:
        raise DataError(
            f"model {str(name)!r} is of {model.n_features} features and the data of {X.shape[1]}: "
            "all models of a report must fit the same data"
        )
    columns = np.arange(model.n_features) if order is None else np.asarray(order)
    own = getattr(given, "evals_result_", None) or None
    return _Subject(
        str(name), model, X, columns, (curves or {}).get(name, own), (settings or {}).get(name), np.zeros(0)
    )


def _baseline_number(names: list[str], baseline: str | None) -> int:
    """Return the position of the baseline."""
    if baseline is None:
        return 0
    if baseline not in names:
        raise RankwoodError(f"there is no model {baseline!r} to compare with; there are {', '.join(names)}")
    return names.index(baseline)


def _differences(
    evaluations: list[Evaluation],
    base: int,
    measures: list[str],
    pairs: Sequence[Pair],
    rule: Acceptance,
    steps: _Steps,
    n_threads: int | None,
) -> list[dict[str, Difference]]:
    """Return differences from the baseline by model and measure."""
    p_of = {(pair.first, pair.second, pair.measure): pair.p for pair in pairs}
    proofs = {measure: _proofs(evaluations, base, measure, rule) for measure in measures}
    by_model: list[dict[str, Difference]] = []
    for number, evaluation in enumerate(evaluations):
        found = {}
        for measure in measures if number != base else ():
            p = p_of[min(number, base), max(number, base), measure]  # two-sided: the order does not matter
            proof = proofs[measure][number]
            found[measure] = _difference(evaluations[base], evaluation, measure, p, proof, n_threads)
        by_model.append(found)
        steps.advance("comparing with the baseline")
    return by_model


def _proofs(evaluations: list[Evaluation], base: int, measure: str, rule: Acceptance) -> dict[int, Proof]:
    """Return, by number of the model, what is shown of its loss against the baseline."""
    values = [weighted_values(one.per_query[measure], one.query_weights) for one in evaluations]
    others = [number for number in range(len(values)) if number != base]
    proofs = Proof.of_each(values[base], [values[number] for number in others], rule, measure=measure)
    return dict(zip(others, proofs, strict=True))


def _difference(
    base: Evaluation, other: Evaluation, measure: str, p: float | None, proof: Proof, n_threads: int | None
) -> Difference:
    """Return a difference with its interval."""
    if p is None:  # fewer than two queries with a value
        return Difference(other[measure] - base[measure], proof=proof)
    found = difference_interval(base, other, measure, n_threads=n_threads)
    return Difference(found.mean_difference, found.low, found.high, p, proof)


def _estimate(evaluation: Evaluation, measure: str, n_threads: int | None) -> Estimate:
    """Return a mean with its interval."""
    try:
        interval = mean_interval(evaluation, measure, n_threads=n_threads)
    except DataError:
        return Estimate(evaluation[measure])
    return Estimate(evaluation[measure], interval.low, interval.high)


def _describe_data(data: Dataset) -> dict[str, Any]:
    """Return the size of the data and the distribution of its labels."""
    labels, counts = np.unique(data.y, return_counts=True)
    most = 12  # labels may be any numbers
    return {
        "queries": data.n_queries,
        "documents": data.n_docs,
        "features": data.n_features,
        "documents_per_query": data.n_docs / max(1, data.n_queries),
        "labels": [[float(label), int(n)] for label, n in zip(labels[:most], counts[:most], strict=True)],
        "n_labels": len(labels),
        "largest_label": float(labels[-1]) if len(labels) else 0.0,
    }


def _feature_names(data: Dataset, models: list[Ensemble]) -> list[str]:
    """Return names of the data's columns: its own, or those of a model that has names."""
    named = data.feature_names or next((model.feature_names for model in models if model.feature_names), None)
    return list(named) if named else [f"feature {n + 1}" for n in range(data.n_features)]


class _Steps:
    """Counts the steps of the work, and tells them."""

    def __init__(self, on_step: OnStep | None, total: int) -> None:
        self._on_step, self._total, self._done = on_step, total, 0

    def advance(self, what: str, by: int = 1) -> None:
        """Tell that steps are done."""
        self._done += by
        if self._on_step is not None:
            self._on_step(what, self._done, self._total)

    def timing(self, models: list[tuple[Ensemble, FeatureMatrix]], engine: str, budget: Budget | None) -> list[Timing]:
        """Time the models, a step each."""
        before = self._done
        return time_models(
            models,
            engine,
            budget=budget,
            on_model=lambda done: self.advance("timing", before + done - self._done),
        )
