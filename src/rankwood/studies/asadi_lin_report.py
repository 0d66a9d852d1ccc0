"""Table 1 of Asadi & Lin (2013), with the paper's numbers beside ours."""

from __future__ import annotations

import dataclasses

import numpy as np

from rankwood.experiments.printed import Table, p_text
from rankwood.experiments.report import Report
from rankwood.studies.asadi_lin import (
    AUTO,
    BASELINE,
    BATCH,
    BEST,
    EQUAL,
    IFELSE,
    IN_WORDS,
    MEASURES,
    SHOWN,
    SIGNIFICANT,
    AsadiLinResults,
    Latency,
    Setting,
)
from rankwood.studies.asadi_lin_figures import make_figures
from rankwood.studies.asadi_lin_paper import PAPER, PAPER_STARS, PAPER_TOUCHED

SHAPE = ("d_avg", "T_avg", "p_avg", "n_avg")


def make_report(found: AsadiLinResults) -> Report:
    """The report of a study whose runs are all done."""
    study = found.study
    best = "Table 1: models of the size that validation data chooses"
    equal = f"Models of {study.equal_trees:,} trees each"
    tables = [
        _rows(found, BEST, "table1", best),
        _rows(found, EQUAL, "equal", equal),
        _beside(found),
        _visits(found),
        _folds(found),
        _tests(found),
        _paper(),
    ]
    compared = [(of, one, adjusted) for of in (BEST, EQUAL) for one, adjusted in found.comparisons(of)]
    return Report(
        title=f"Efficient trees by cost-sensitive growth and pruning while boosting: {study.source.name}",
        summary=_summary(found),
        tables=tables,
        figures=make_figures(found),
        differences=_differences(found),
        facts={
            "folds": list(study.folds),
            "n_seeds": study.n_seeds,
            "timing": study.timing,
            "engines_of_auto": found.chosen_engines(),
            "no_generated_c": found.obstacle(),
            "topology": {s.name: {of: found.topology(s.name, of) for of in (BEST, EQUAL)} for s in study.settings},
            "comparisons": [{"of": of, **dataclasses.asdict(one), "p_holm": p} for of, one, p in compared],
        },
    )


def _summary(found: AsadiLinResults) -> str:
    study, base = found.study, found.topology(BASELINE.name)
    text = (
        f"LambdaMART of up to {study.n_trees:,} trees with {study.n_leaves} leaves, learning rate "
        f"{study.learning_rate:g}, stopped after {study.patience:,} trees without a better validation nDCG; folds "
        f"{', '.join(map(str, study.folds))}, {study.n_seeds} run{'s' * (study.n_seeds > 1)} each. Scoring a document "
        f"with the plain models looks at {base['features_touched']:.1%} of the features (paper: {PAPER_TOUCHED:.1%})."
    )
    best = next((s for s in study.settings if s == Setting("alpha", 0.2)), study.settings[-1])
    engine = found.main_engine
    time, quality = found.latency(best.name, engine, EQUAL), found.compare(best.name, SHOWN, EQUAL)
    if time is not None and best != BASELINE:
        text += (
            f" {best.name} against the baseline, {study.equal_trees:,} trees each: latency "
            f"{_change(1 / time.speed_up)} with {IN_WORDS[engine]}, {SHOWN} {quality.difference:+.4f} "
            f"(p {p_text(quality.p_value)}); the paper's choice is alpha 0.2, with -39.1% and -0.002."
        )
    return text


def _change(ratio: float) -> str:
    """A relative change as the paper prints it.

    >>> _change(0.609), _change(1.012), _change(1.0)
    ('-39.1%', '+1.2%', '+0.0%')
    """
    return f"{100 * (ratio - 1):+.1f}%"


def _time(latency: Latency | None) -> str:
    if latency is None:
        return "–"
    return f"{latency.us:.3g}" + ("" if latency.half is None else f" (±{latency.half:.2g})")


def _rows(found: AsadiLinResults, of: str, name: str, title: str) -> Table:
    """The paper's table 1: topology, quality, latency; a row per setting."""
    rows = []
    for setting in (s.name for s in found.study.settings):
        shape = found.topology(setting, of)
        row = [
            setting,
            f"{shape['depth']:.1f}",
            f"{shape['trees']:,.1f}",
            f"{shape['path']:,.0f}",
            f"{shape['nodes']:,.0f}",
        ]
        for measure in MEASURES:
            star = "" if setting == BASELINE.name else found.compare(setting, measure, of).star
            row.append(f"{np.mean(found.ndcg(setting, measure, of)):.4f}{star}")
        for engine in (IFELSE, AUTO):
            latency = found.latency(setting, engine, of)
            row += [_time(latency), "–" if latency is None else f"{latency.speed_up:.2f}x"]
        rows.append(row)
    engines = ", ".join(found.chosen_engines())
    obstacle = found.obstacle()
    return Table(
        name,
        f"{title}, {found.study.source.name}",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES),
         "C, us/doc", "speed-up", "engine, us/doc", "speed-up"],
        rows,
        "d_avg: mean of the trees' maximum depths; T_avg: trees; p_avg: sum of the depths; n_avg: nodes of the model, "
        f"leaves too. @k: nDCG@k on test data; *: differs from the baseline (Wilcoxon, p < {SIGNIFICANT}, test queries "
        "of all folds, not corrected for the number of comparisons). us/doc: microseconds per document, one thread, "
        f"in batches of {BATCH[IFELSE]:,} with the generated C (ifelse), of {BATCH[AUTO]:,} with the engine that "
        f"rankwood chooses ({engines}); "
        "mean of "
        + ("all models" if of == BEST else "the models of the first seed")
        + " and its 95 % interval over models."
        + (f" No generated C: {obstacle}." if obstacle else ""),
    )  # fmt: skip


def _beside(found: AsadiLinResults) -> Table:
    """Changes against the baseline, ours and the paper's in turn."""
    rows = []
    base, paper_base = found.topology(BASELINE.name), PAPER["baseline"]
    shapes = ("depth", "trees", "path", "nodes")
    for setting in (s.name for s in found.study.settings if s != BASELINE):
        shape, paper, row = found.topology(setting), PAPER.get(setting), [setting]
        for number, name in enumerate(shapes):
            theirs = "–" if paper is None else _change(paper[number] / paper_base[number])
            row.append(f"{_change(shape[name] / base[name])} / {theirs}")
        theirs = "–" if paper is None else f"{paper[7] - paper_base[7]:+.3f}"
        row.append(f"{found.compare(setting, SHOWN).difference:+.4f} / {theirs}")
        theirs = "–" if paper is None else _change(paper[9] / paper_base[9])
        for of in (BEST, EQUAL):
            latency = found.latency(setting, IFELSE, of)
            ours = "–" if latency is None else _change(1 / latency.speed_up)
            row.append(f"{ours} / {theirs}" if of == BEST else ours)
        rows.append(row)
    return Table(
        "beside",
        f"Changes against the baseline: ours on {found.study.source.name} / the paper's on MSLR-WEB10K",
        ["setting", *SHAPE, f"{SHOWN}, difference", "latency, generated C",
         f"the same, {found.study.equal_trees:,} trees"],
        rows,
        "The last column is ours alone: with as many trees in every model, the choice of their number plays no part.",
    )  # fmt: skip


def _visits(found: AsadiLinResults) -> Table:
    """What documents meet of models of equal size, and what their latency goes with."""
    engine = found.main_engine
    names, rows = [setting.name for setting in found.study.settings], []
    shapes = {name: found.topology(name, EQUAL) for name in names}
    times = {name: found.latency(name, engine, EQUAL) for name in names}
    for name in names:
        shape, latency = shapes[name], times[name]
        rows.append([name, f"{shape['path']:,.0f}", f"{shape['splits_per_doc']:,.0f}", f"{shape['nodes']:,.0f}",
                     f"{shape['features_touched']:.1%}", "–" if latency is None else f"{latency.us:.3g}"])  # fmt: skip
    columns = {"p_avg": "path", "splits met": "splits_per_doc", "n_avg": "nodes"}
    us = [latency.us for latency in times.values() if latency is not None]
    goes_with = []
    for title, column in columns.items():
        values = [shapes[name][column] for name in names]
        if len(us) == len(names) and min(np.std(us), np.std(values)) > 0:
            goes_with.append(f"{title} {np.corrcoef(us, values)[0, 1]:.3f}")
    return Table(
        "visits",
        f"What a document meets in {found.study.equal_trees:,} trees, {found.study.source.name}",
        ["setting", "p_avg", "splits met", "n_avg", "features looked at", "us/doc"],
        rows,
        "p_avg: the most splits that a document can meet; splits met: how many it does, on average over test "
        f"documents. us/doc: with {IN_WORDS[engine]}."
        + (f" Correlation with us/doc over settings: {', '.join(goes_with)}." if goes_with else ""),
    )


def _folds(found: AsadiLinResults) -> Table:
    """Every fold on its own, as figures 1 and 2 of the paper show it."""
    rows = []
    for fold in found.study.folds:
        for setting in (s.name for s in found.study.settings):
            shape = found.topology(setting, fold=fold)
            row = [f"{fold}", setting, f"{shape['depth']:.1f}", f"{shape['trees']:,.1f}", f"{shape['nodes']:,.0f}"]
            row += [f"{np.mean(found.ndcg(setting, measure, fold=fold)):.4f}" for measure in MEASURES]
            row += [_time(found.latency(setting, engine, fold=fold)) for engine in (IFELSE, AUTO)]
            rows.append(row)
    return Table(
        "folds",
        f"By fold, {found.study.source.name}",
        ["fold", "setting", "d_avg", "T_avg", "n_avg", *(m.removeprefix("nDCG") for m in MEASURES),
         "C, us/doc", "engine, us/doc"],
        rows,
        "The models of table 1; intervals over seeds where there are three or more.",
    )  # fmt: skip


def _tests(found: AsadiLinResults) -> Table:
    rows, n_worse, n_all = [], 0, 0
    for of, models in ((BEST, "chosen size"), (EQUAL, f"{found.study.equal_trees:,} trees")):
        for one, adjusted in found.comparisons(of):
            n_worse, n_all = n_worse + (one.difference < 0 and adjusted < SIGNIFICANT), n_all + 1
            if one.measure == SHOWN:
                rows.append([one.setting, models, f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}",
                             p_text(one.p_value), p_text(adjusted)])  # fmt: skip
    return Table(
        "tests",
        f"{SHOWN} against the baseline, {found.study.source.name}",
        ["setting", "models", "difference", "95 % interval", "p", "p, Holm"],
        rows,
        "Test queries of all folds, each query's mean over seeds. Interval: bootstrap over queries. p: Wilcoxon "
        "signed-rank test; Holm's correction is for all settings and cutoffs of the kind of models. After "
        f"it, worse at any cutoff: {n_worse} of {n_all}.",
    )


def _paper() -> Table:
    rows = []
    for setting, values in PAPER.items():
        stars = PAPER_STARS.get(setting, 0)
        row = [setting, f"{values[0]:.1f}", f"{values[1]:.1f}", f"{values[2]:,.0f}", f"{values[3]:,.0f}"]
        row += [f"{value:.3f}{'*' * (number >= 5 - stars)}" for number, value in enumerate(values[4:9])]
        rows.append([*row, f"{values[9]:.1f} (±{values[10]:.1f})", _change(values[9] / PAPER["baseline"][9])])
    return Table(
        "paper",
        "The paper's table 1: MSLR-WEB10K, five folds, 100 runs each",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES), "us", "change"],
        rows,
        "Latency with generated C; the change is that of the rounded numbers. Compare changes with ours, not the "
        "numbers, unless the data are the same.",
    )


def _differences(found: AsadiLinResults) -> list[str]:
    study = found.study
    return [
        "The data are others than the paper's, the five folds of MSLR-WEB10K, unless --data names them.",
        f"{study.n_seeds} run{'s' * (study.n_seeds > 1)} per fold and setting instead of 100.",
        "The paper does not say when training ends. Here it ends when nDCG of whole lists on validation data has not "
        f"improved for {study.patience:,} trees, or at {study.n_trees:,}, and the model is cut back to its best size. "
        "On small data that size is mostly chance, and with it n_avg and latency; so models of "
        f"{study.equal_trees:,} trees are compared as well.",
        "Samples are of whole queries (30 % per tree) and of features (30 % per split); the paper's minimum of "
        "observations per leaf, 0.5, is read as 0.5 % of the documents.",
        "Trees look at 255 bins of every feature. Of several deepest pairs of leaves the one whose split gained least "
        "is collapsed first; the paper does not say which.",
        "Stars come from one test over the test queries of all folds, with each query's mean over runs; the paper does "
        "not say what its pairs are.",
        f"Latency is the median of calls with {BATCH[IFELSE]:,} test documents each (our engine: {BATCH[AUTO]:,}), as "
        "Python sees it; the paper's is of single instances in a C program. Code is compiled with -O1.",
    ]  # fmt: skip
