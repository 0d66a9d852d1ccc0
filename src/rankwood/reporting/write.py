"""`write_report`: models on data as one HTML file, and as figures for papers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write, check_writable
from rankwood.data.dataset import Dataset
from rankwood.drawing import check_figures, write_figure
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.reporting.gather import MEASURES, TITLE, Curves, OnStep, gather
from rankwood.reporting.page import render_page


def write_report(
    path: str | os.PathLike[str],
    models: Mapping[str, Any],
    data: Dataset,
    *,
    baseline: str | None = None,
    measures: str | Measure | Sequence[str | Measure] = MEASURES,
    convention: str | Convention | None = None,
    curves: Curves | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = TITLE,
    figures: str | os.PathLike[str] | None = None,
    engine: str = "auto",
    n_threads: int | None = None,
    on_step: OnStep | None = None,
) -> list[Path]:
    """Write a report of models on data: one HTML file that needs no network and nothing beside it.

    models      by name: an Ensemble, a fitted learner, a model file, or whatever else `load_model` takes
    data        held-out data, with labels and queries
    baseline    name of the model that the others are compared with; the first unless given
    measures    the first is that of the headline
    convention  of the measures; rankwood's own unless given
    curves      learning curves by name, as `evals_result_` has them; learners and models of rankwood bring theirs
    settings    settings by name, to be shown; models of rankwood bring theirs
    figures     folder for every figure as PNG and SVG, which needs matplotlib
    engine      that is timed; the fastest that needs no compiler unless given. Times are of one thread
    n_threads   for measuring quality
    on_step     called with what is being done, the number of steps done and that of all

    Gives the paths of what was written, the page first.

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
        from rankwood.reporting.figures import report_figures

        folder = Path(figures)
        folder.mkdir(parents=True, exist_ok=True)
        drawn = report_figures(facts)
        for number, figure in enumerate(drawn, start=1):
            written += write_figure(figure, folder)
            if on_step is not None:
                on_step("drawing", number, len(drawn))
    return written
