"""Tables 2 to 4 and figures 1 to 3 of Ibrahim & Carman (2014), with the paper's numbers beside ours."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.drawing import Figure
from rankwood.evaluation.conventions import Convention
from rankwood.experiments.printed import Table, p_text, with_spread
from rankwood.experiments.report import Report
from rankwood.studies.figures import SMOOTHED_FROM, smooth
from rankwood.studies.subsampling import BASELINE, CONVENTION, MAP, NDCG, Contrast, SubsamplingResults

SHOWN = {NDCG: "nDCG@10", MAP: "MAP"}
TOLERANCE = 0.005  # a larger difference from the paper is pointed out


@dataclass(frozen=True)
class Published:
    """What the paper reports of one data set: (mean, standard deviation) by part, setting and measure."""

    queries: str  # of the reduced samples
    speed_up: int
    values: dict[tuple[str, str, str], tuple[float, float]]
    others: dict[str, tuple[float, float]]  # nDCG@10 and MAP of other algorithms on test data (table 4)


def _published(queries: str, speed_up: int, numbers: list[float], others: list[float]) -> Published:
    """`numbers` stand as in tables 2 and 3: mean and deviation of reduced and baseline nDCG, then of both MAPs."""
    keys = [(p, s, m) for p in ("valid", "test") for m in (NDCG, MAP) for s in (queries, BASELINE)]
    values = dict(zip(keys, zip(numbers[::2], numbers[1::2], strict=True), strict=True))
    names = ("ListNet", "AdaRank-MAP", "AdaRank-NDCG", "RankBoost", "RankSVM-Primal", "RankSVM-Struct", "LambdaMART")
    return Published(queries, speed_up, values, dict(zip(names, zip(others[:7], others[7:], strict=True), strict=True)))


PAPER = {
    "OHSUMED": _published(
        "1", 29,
        [0.4427, 0.0024, 0.4187, 0.0039, 0.4490, 0.0015, 0.4221, 0.0016,
         0.4443, 0.0022, 0.4317, 0.0033, 0.4473, 0.0009, 0.4221, 0.0013],
        [0.4410, 0.4429, 0.4496, 0.4302, 0.4504, 0.4523, 0.4367,
         0.4457, 0.4487, 0.4498, 0.4411, 0.4446, 0.4478, 0.4173],
    ),
    "MQ2008": _published(
        "21", 17,
        [0.2290, 0.0009, 0.2233, 0.0085, 0.4745, 0.0013, 0.4703, 0.0098,
         0.2292, 0.0008, 0.2238, 0.0011, 0.4736, 0.0016, 0.4701, 0.0012],
        [0.2303, 0.2288, 0.2307, 0.2255, 0.2279, 0.2309, 0.2302,
         0.4775, 0.4764, 0.4824, 0.4775, 0.4744, 0.4696, 0.4751],
    ),
    "MQ2007": _published(
        "51", 17,
        [0.4453, 0.0016, 0.4353, 0.0005, 0.4619, 0.0011, 0.4539, 0.0006,
         0.4447, 0.0013, 0.4363, 0.0010, 0.4619, 0.0012, 0.4533, 0.0004],
        [0.4440, 0.4335, 0.4369, 0.4464, 0.4436, 0.4439, 0.4484,
         0.4652, 0.4577, 0.4602, 0.4662, 0.4659, 0.4644, 0.4675],
    ),
}  # fmt: skip


def make_report(found: SubsamplingResults) -> Report:
    """The report of a study whose runs are all done."""
    study, name = found.study, found.study.source.name
    paper = PAPER.get(name)
    contrasts = {measure: found.contrast(found.best, measure) for measure in (NDCG, MAP)}
    tables = [_beside(found, "test", paper), _significance(found, paper), _beside(found, "valid", paper), _sweep(found)]
    if paper is not None:
        tables.append(_others(found, paper))
    return Report(
        title=f"Forests on small samples of queries: {name}",
        summary=_summary(found, contrasts),
        tables=tables,
        figures=[
            *(_quality(found, measure) for measure in (NDCG, MAP)),
            _time(found),
            _trees(found),
        ],
        differences=_differences(found, paper),
        facts={
            "best": found.best,
            "n_seeds": study.n_seeds,
            "folds": list(study.folds),
            "contrasts": [dataclasses.asdict(contrast) for contrast in contrasts.values()],
        },
    )


def _summary(found: SubsamplingResults, contrasts: dict[str, Contrast]) -> str:
    study, best = found.study, found.best
    text = (
        f"{study.n_trees:,} trees a forest, criterion {study.criterion}, folds {_listed(study.folds)}, {study.n_seeds} "
        f"runs each. Convention {Convention.get(CONVENTION).describe()}. On validation data {_words(best)} is best"
    )
    if best == BASELINE:
        return f"{text}: small samples do not help here."
    parts = [
        f"{SHOWN[measure]} {c.difference:+.4f} (95 % interval {c.interval[0]:+.4f} to {c.interval[1]:+.4f}, "
        f"randomisation test p {_is(c.p_randomisation)}, paired t p {_is(c.p_t)})"
        for measure, c in contrasts.items()
    ]
    return (
        f"{text}; on the {contrasts[NDCG].n_queries} test queries it is against {BASELINE} of the queries: "
        f"{' and '.join(parts)}; training is {found.speed_up(best):.1f} times as fast."
    )


def _beside(found: SubsamplingResults, part: str, paper: Published | None) -> Table:
    """Table 2 (validation) or 3 (test)."""
    rows = []
    for setting in [*_looked_at(found, paper), BASELINE]:
        row = [_setting(found, setting), f"{found.mean_of(setting, 'seconds'):.2f}", f"{found.speed_up(setting):.1f}"]
        if paper is not None:
            row.append({paper.queries: f"{paper.speed_up}", BASELINE: "1"}.get(setting, "–"))
        for measure in (NDCG, MAP):
            ours = found.mean_and_std(setting, part, measure)
            row.append(with_spread(*ours))
            if paper is not None:
                theirs = paper.values.get((part, setting, measure))
                row += ["–", "–"] if theirs is None else [with_spread(*theirs), f"{ours[0] - theirs[0]:+.4f}"]
        rows.append(row)
    beside = ["paper"] if paper else []
    by_measure = [column for name in SHOWN.values() for column in (name, *(("paper", "difference") if paper else ()))]
    number, where = ("3", "test") if part == "test" else ("2", "validation")
    return Table(
        f"table{number}",
        f"Table {number}: {where} data, {found.study.source.name}",
        ["queries per tree", "training s per fold", "speed-up", *beside, *by_measure],
        rows,
        f"Mean over folds and runs; in brackets the standard deviation between runs ({found.study.n_seeds}). First: "
        f"the best on validation data. Speed-up is over {BASELINE} of the queries. Convention {CONVENTION}.",
    )


def _looked_at(found: SubsamplingResults, paper: Published | None) -> list[str]:
    """The best setting, and the paper's."""
    theirs = [paper.queries] if paper is not None and paper.queries in found.study.sweep else []
    return [setting for setting in dict.fromkeys([found.best, *theirs]) if setting != BASELINE]


def _significance(found: SubsamplingResults, paper: Published | None) -> Table:
    rows = []
    for setting in _looked_at(found, paper):
        for measure in (NDCG, MAP):
            c = found.contrast(setting, measure)
            interval = f"{c.interval[0]:+.4f} to {c.interval[1]:+.4f}"
            tests = [p_text(c.p_randomisation), p_text(c.p_t)]
            rows.append([_setting(found, setting), SHOWN[measure], f"{c.difference:+.4f}", interval, *tests])
    return Table(
        "significance",
        f"Against {BASELINE} of the queries on test data, {found.study.source.name}",
        ["queries per tree", "measure", "difference", "95 % interval", "p, randomisation", "p, paired t"],
        rows,
        "On the values of all test queries, each the mean over runs: whether other queries would tell the same.",
    )


def _sweep(found: SubsamplingResults) -> Table:
    rows = []
    for setting in found.study.sweep:
        values = [
            with_spread(*found.mean_and_std(setting, part, measure))
            for part in ("valid", "test")
            for measure in (NDCG, MAP)
        ]
        facts = [f"{found.mean_of(setting, 'seconds'):.2f}", f"{found.mean_of(setting, 'n_leaves'):,.0f}"]
        trees = [_number(found.correlation(setting)), *(_number(found.strength(setting, m)) for m in (NDCG, MAP))]
        rows.append([_setting(found, setting), *values, *facts, *trees])
    return Table(
        "sweep",
        f"All settings, {found.study.source.name}",
        ["queries per tree", "valid nDCG@10", "valid MAP", "test nDCG@10", "test MAP", "training s per fold", "leaves",
         "correlation", "strength nDCG@10", "strength MAP"],
        rows,
        "Correlation: mean over pairs of trees, of their outputs on validation data; strength: mean over trees of the "
        "measure of the tree alone, equal scores counting as the mean over their orders. Both of the first run.",
    )  # fmt: skip


def _others(found: SubsamplingResults, paper: Published) -> Table:
    """Table 4: other algorithms, as the paper quotes them."""
    rows = [[name, f"{ndcg:.4f}", f"{ap:.4f}", "paper"] for name, (ndcg, ap) in paper.others.items()]
    for name, setting in ("forest, 63%", BASELINE), (f"forest, {paper.queries}", paper.queries):
        values = [paper.values["test", setting, measure] for measure in (NDCG, MAP)]
        rows.append([name, *(f"{mean:.4f}" for mean, _ in values), "paper"])
    for setting in dict.fromkeys((BASELINE, found.best)):
        ours = [found.mean_and_std(setting, "test", measure)[0] for measure in (NDCG, MAP)]
        rows.append([f"forest, {setting}", *(f"{value:.4f}" for value in ours), "ours"])
    return Table("table4", f"Table 4: other algorithms on test data, {found.study.source.name}",
                 ["algorithm", "nDCG@10", "MAP", "source"], rows)  # fmt: skip


def _differences(found: SubsamplingResults, paper: Published | None) -> list[str]:
    study = found.study
    lines = [
        "The paper extends Weka; here every distinct value is a possible threshold, features are drawn anew at every "
        "node, and more are drawn as long as all those drawn are constant in it.",
        f"{study.n_seeds} runs of each setting (the paper has 10), {len(study.sweep)} settings (the paper about 25), "
        f"{study.n_trees:,} trees (the paper 1,000). The paper fits an R smoothing spline with parameter 0.01; ours is "
        "a cubic smoothing spline whose penalty is chosen by generalised cross-validation.",
        "Deviations are of the mean over folds, between runs. Training times are of this machine with all its threads.",
        "Correlation and strength are argued from in the paper, not reported.",
    ]
    if paper is None:
        lines.append(f"The paper has no figures for this data ({study.source.name}).")
        return lines
    if len(study.folds) < study.source.n_folds:
        lines.append(f"The paper's figures are means over all folds, ours over {_listed(study.folds)} only.")
    if paper.queries not in study.sweep:
        lines.append(f"The paper's setting of {paper.queries} queries is not part of the sweep.")
    for (part, setting, measure), (theirs, _) in paper.values.items():
        if setting in study.sweep:
            ours = found.mean_and_std(setting, part, measure)[0]
            if abs(ours - theirs) > TOLERANCE:
                lines.append(
                    f"{SHOWN[measure]} with {_words(setting)} on {part} data is {ours:.4f}, {ours - theirs:+.4f} from "
                    "the paper's: more than 0.005."
                )
    return lines


def _quality(found: SubsamplingResults, measure: str) -> Figure:
    """Figures 1 and 2: every run on validation data with a smooth curve, and the deviation between runs."""
    shares = [100 * found.share(setting) for setting in found.study.sweep]
    values = [found.run_means(setting, "valid", measure) for setting in found.study.sweep]
    deviations = [found.mean_and_std(setting, "valid", measure)[1] or 0.0 for setting in found.study.sweep]
    name = SHOWN[measure]

    def draw(canvas: Any) -> None:
        left, right = canvas.subplots(1, 2, width_ratios=[2, 1])
        x = np.repeat(shares, [len(runs) for runs in values])
        left.scatter(x, np.concatenate(values), s=14, alpha=0.6, color="tab:blue", label="one run")
        means = "smoothing spline of the means" if len(shares) >= SMOOTHED_FROM else "means"
        left.plot(*smooth(shares, [runs.mean() for runs in values]), color="black", label=means)
        _log_shares(left, shares)
        left.set(ylabel=f"{name} on validation data", title=f"{name}, {found.study.source.name}")
        left.legend(fontsize=8)
        right.bar(range(len(shares)), deviations, color="tab:gray")
        right.set_xticks(range(len(shares)), [f"{share:.3g}" for share in shares], rotation=45, fontsize=8)
        right.set(
            xlabel="queries per tree, %", ylabel="standard deviation", title=f"between {found.study.n_seeds} runs"
        )

    number = 1 if measure == NDCG else 2
    return Figure(f"figure{number}", f"Figure {number}: {name} over the share of queries that a tree sees.", draw)


def _time(found: SubsamplingResults) -> Figure:
    shares = [100 * found.share(setting) for setting in found.study.sweep]
    seconds = [found.mean_of(setting, "seconds") for setting in found.study.sweep]

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        axes.plot(shares, seconds, marker="o")
        axes.set(xlabel="queries per tree, %", ylabel="training time, s per fold", xlim=(0, None), ylim=(0, None),
                 title=f"{found.study.n_trees:,} trees, {found.study.source.name}")  # fmt: skip

    return Figure("figure3", "Figure 3: training time over the share of queries that a tree sees.", draw, (5.5, 4.0))


def _trees(found: SubsamplingResults) -> Figure:
    shares = [100 * found.share(setting) for setting in found.study.sweep]

    def draw(canvas: Any) -> None:
        left, right = canvas.subplots(1, 2)
        left.plot(shares, [found.correlation(setting) for setting in found.study.sweep], marker="o", color="tab:red")
        left.set(ylabel="mean correlation between trees", title="How alike trees are")
        for measure, name in SHOWN.items():
            strengths = [found.strength(setting, measure) for setting in found.study.sweep]
            right.plot(shares, strengths, marker="o", label=name)
        right.set(ylabel="mean over single trees", title="How strong they are alone")
        right.legend(fontsize=8)
        for axes in (left, right):
            _log_shares(axes, shares)

    return Figure("trees", "Correlation and strength of the trees, on validation data.", draw)


def _log_shares(axes: Any, shares: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(shares, [f"{share:.3g}" for share in shares])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("queries per tree, % (logarithmic)")
    axes.grid(alpha=0.3)


def _setting(found: SubsamplingResults, setting: str) -> str:
    counts = sorted({result["n_queries"] for _, result in found.of(setting)})
    text = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    return f"{text} ({100 * found.share(setting):.1f}%)"


def _words(setting: str) -> str:
    return (
        f"{setting} of the queries"
        if setting.endswith("%")
        else f"{setting} quer{'y' if setting == '1' else 'ies'} per tree"
    )


def _listed(numbers: Any) -> str:
    return ", ".join(map(str, numbers))


def _is(p: float) -> str:
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"
