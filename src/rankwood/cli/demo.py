"""`rankwood demo`: train a ranker on built-in data, shrink it, compare and time it, and print what was found."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from rankwood.cli.console import print_line, print_table, print_text, progress, tell
from rankwood.cli.models import Threads
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.lab.report.facts import ModelFacts, ReportFacts
    from rankwood.shrinking.result import ShrinkResult

MEASURES = ("nDCG@10", "ERR", "AP")
NAME, RIVAL, SHRUNK = "lambdamart", "small", "shrunk"  # models: rows of the table, and names of their files
PATIENCE = 100  # trees without improvement on validation data before training stops
MARK = ".rankwood-demo"  # an empty file that marks a folder as the demo's own
COLUMNS = ("model", "leaves", f"{MEASURES[0]} (95 %)", "diff.", "p", "us/doc", "factor")


@dataclass(frozen=True)
class Size:
    """Sizes of the demo's data and models.

    Parameters
    ----------
    n_queries, docs_per_query : int
        Shape of the data.
    n_others : int
        Features besides those that relevance depends on.
    n_trees, n_leaves, learning_rate, min_docs_per_leaf : int, int, float, int
        Parameters of LambdaMART; trees at most, as validation data stops it. The last is that of both models.
    rival_trees, rival_leaves, rival_learning_rate : int, int, float
        Parameters of the model that is small from the start.
    factors : tuple of float
        How many times smaller the models are that shrinking tries.
    margin : float
        Loss of the measure that a smaller model must be shown not to have.
    """

    n_queries: int
    docs_per_query: int
    n_others: int
    n_trees: int
    n_leaves: int
    learning_rate: float
    min_docs_per_leaf: int
    rival_trees: int
    rival_leaves: int
    rival_learning_rate: float
    factors: tuple[float, ...]
    margin: float


# LambdaMART's parameters are by validation data of two seeds that are shown nowhere (100 and 101): learning rates
# 0.05, 0.07 and 0.1, leaves 31, 64 and 128, documents per leaf 30 and 100 were varied one by one. Two settings were
# better in the mean of the seeds, by 0.0007 (0.05) and 0.0023 (128 leaves), at about twice the leaves: a smaller model
# is the harder one to shrink, and is trained sooner. The rival's are the best of seven of about 2,480 leaves, likewise.
FULL = Size(
    7500, 40, 14, n_trees=1000, n_leaves=64, learning_rate=0.07, min_docs_per_leaf=100,
    rival_trees=80, rival_leaves=31, rival_learning_rate=0.2, factors=(5.0, 10.0, 15.0), margin=0.005,
)  # fmt: skip
QUICK = Size(
    2000, 30, 4, n_trees=200, n_leaves=31, learning_rate=0.1, min_docs_per_leaf=50,
    rival_trees=30, rival_leaves=31, rival_learning_rate=0.1, factors=(2.0, 4.0), margin=0.02,
)  # fmt: skip


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for data, models and the report.")] = Path(
        "rankwood-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Less data and smaller models: some seconds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of all that is drawn at random.")] = 0,
    threads: Threads = None,
) -> None:
    """Train a ranker on built-in data, shrink it, and compare what it is worth and what it costs.

    Three models: LambdaMART, tuned and stopped by validation data; one that is small from the start, as LightGBM would train it; and the first one after shrinking, as small as validation data shows that it loses less than a margin. The table is of held-out queries that none of them has seen. Takes a minute on two cores, needs no network, and leaves data, models and an HTML report in a folder.
    """  # noqa: E501  typer keeps line ends
    start = time.monotonic()
    _take_folder(out)
    size = QUICK if quick else FULL
    tell(f"a ranker made smaller, on synthetic data, in {out}: {'some seconds' if quick else 'a minute'} on two cores")
    train, valid, test = _make_data(size, out, seed, threads)
    models = _train(size, train, valid, seed, threads)
    result = _shrink(size, models[NAME], train, valid, seed, threads)
    models[SHRUNK] = result.ensemble
    for name, model in models.items():
        model.save(out / f"{name}.rw")
    facts = _look(models, test, out, size.margin, threads)
    tell("")
    print_result(facts, result)
    print_next(out)
    tell(f"took {time.monotonic() - start:.0f} s")


def _take_folder(out: Path) -> None:
    """Make the demo's folder, or take the one of an earlier run; refuse a folder with other files."""
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).exists():
        raise RankwoodError(f"{out} has files that are not the demo's: give it a folder of its own with --out")
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()


def _make_data(size: Size, out: Path, seed: int, threads: int | None) -> tuple[Dataset, Dataset, Dataset]:
    """Training, validation and test data, made up, written as LETOR files and read back as users read theirs."""
    from rankwood.data.svmlight import read_svmlight, write_svmlight

    data = _ranking(size, seed, threads)
    train, rest = data.split(0.4, seed=0)
    valid, test = rest.split(2 / 3, seed=0)  # many to validate by, as these queries judge, too
    parts = {"train": train, "valid": valid, "test": test}
    with progress("writing data", unit="files") as advance:
        for number, (name, part) in enumerate(parts.items()):
            advance(number, len(parts))
            write_svmlight(part, out / f"{name}.txt")
    read = [read_svmlight(out / f"{name}.txt", n_features=data.n_features, n_threads=threads) for name in parts]
    tell(f"made {data.n_docs:,} documents of {data.n_queries:,} queries: to train 40 %, validate 40 %, test 20 %")
    return read[0], read[1], read[2]


def _ranking(size: Size, seed: int, threads: int | None) -> Dataset:
    """Synthetic data with all features that relevance depends on and some others, as real data has them.

    Fewer of the first kind would leave little to learn, so that a small model is as good as any.
    """
    from rankwood.data.synthetic import COLUMN, FEATURE_NAMES, SIGNALS, make_ranking

    data = make_ranking(size.n_queries, size.docs_per_query, len(FEATURE_NAMES), seed=seed, n_threads=threads)
    signals = [COLUMN[signal.feature] for signal in SIGNALS]
    others = np.setdiff1d(np.arange(data.n_features), signals)
    others = others[np.linspace(0, len(others) - 1, size.n_others).astype(int)]
    columns = np.sort(np.concatenate([signals, others]).astype(int))
    names = [FEATURE_NAMES[column] for column in columns]
    return data.replace(X=np.ascontiguousarray(data.X[:, columns]), feature_names=names)


def _train(size: Size, train: Dataset, valid: Dataset, seed: int, threads: int | None) -> dict[str, Ensemble]:
    """The model to shrink, and the one that is small from the start, by name."""
    from rankwood.cli.console import training_progress
    from rankwood.data.bins import BinnedDataset
    from rankwood.training.estimators import LambdaMART

    learners = {
        NAME: LambdaMART(
            n_trees=size.n_trees,
            n_leaves=size.n_leaves,
            learning_rate=size.learning_rate,
            min_docs_per_leaf=size.min_docs_per_leaf,
            early_stopping_rounds=PATIENCE,
            random_state=seed,
            n_jobs=threads,
        ),
        RIVAL: LambdaMART(
            n_trees=size.rival_trees,
            n_leaves=size.rival_leaves,
            learning_rate=size.rival_learning_rate,
            min_docs_per_leaf=size.min_docs_per_leaf,
            random_state=seed,
            n_jobs=threads,
        ),
    }
    how = {NAME: ", stopped by validation data", RIVAL: ", as LightGBM would train them"}
    binned = BinnedDataset.make(train, n_threads=threads)
    models: dict[str, Ensemble] = {}
    for name, ranker in learners.items():
        start = time.monotonic()
        with training_progress(name) as callbacks:
            ranker.fit(binned, eval_set=[binned, valid], eval_names=["train", "valid"], callbacks=callbacks)
        models[name] = ranker.ensemble_
        took = f"{time.monotonic() - start:.1f} s"
        tell(f"trained {name}: {ranker.n_trees_:,} trees of {ranker.n_leaves} leaves{how[name]}, {took}")
    return models


def _shrink(
    size: Size, model: Ensemble, train: Dataset, valid: Dataset, seed: int, threads: int | None
) -> ShrinkResult:
    """The smallest model on the path that is shown by validation data to lose less than the margin."""
    from rankwood.shrinking.path import Route, ShrinkSettings
    from rankwood.shrinking.shrink import shrink

    # Two routes instead of the seven that `shrink` takes by itself, to be done sooner; chosen with the seeds 0 and 101.
    routes = (Route("selected", "refitted", trees=0.25), Route("grown", "refitted"))
    start = time.monotonic()
    with progress("shrinking") as advance:
        result = shrink(
            model,
            train,
            valid,
            margin=size.margin,
            settings=ShrinkSettings(routes=routes, factors=size.factors, seed=seed),
            measure_speed=False,
            n_threads=threads,
            progress=advance,
        )
    seconds = time.monotonic() - start
    if result.accepted:
        tell(f"shrunk {NAME}: {result.ensemble.n_leaves:,} of {model.n_leaves:,} leaves, {seconds:.1f} s")
    else:
        tell(f"shrunk {NAME}: nothing smaller was shown to be as good, so it stays as it is, {seconds:.1f} s")
    return result


def _look(models: dict[str, Ensemble], test: Dataset, out: Path, margin: float, threads: int | None) -> ReportFacts:
    """Facts of the models on test data: measures, comparisons and times; also written as an HTML report."""
    from rankwood.atomic import atomic_write
    from rankwood.lab.report.page import render_page
    from rankwood.lab.report.write import gather

    with progress("comparing and timing", unit="steps") as advance:
        facts = gather(
            models,
            test,
            measures=MEASURES,
            margin=margin,
            title="rankwood demo: a ranker made smaller, on synthetic data",
            n_threads=threads,
            on_step=lambda what, done, total: advance(done, total),
        )
    with atomic_write(out / "report.html", "w") as file:
        file.write(render_page(facts))
    return facts


def print_result(facts: ReportFacts, result: ShrinkResult) -> None:
    """Print the table of models, and what it means in some sentences."""
    timing = facts.base.timing
    print_table(
        f"On {facts.data['queries']:,} queries that no model has seen ({facts.data['documents']:,} documents)",
        COLUMNS,
        [_row(facts, model) for model in facts.models],
        caption=(
            f"diff., factor: against {facts.base.name}; p: randomisation test, corrected (Holm) for all pairs of "
            "models, by `evaluate` for those with the first.",
            f"us/doc: one thread, {timing.batch:,} documents per call, sums in {timing.precision} precision.",
        ),
    )
    for sentence in (_shown(result), _tested(facts, result), _against_rival(facts)):
        if sentence:
            print_text(sentence)


def _row(facts: ReportFacts, model: ModelFacts) -> list[str]:
    from rankwood.lab.report.page import number, p_or_dash

    measure = facts.measures[0]
    quality, difference = model.quality[measure], model.difference.get(measure)
    interval = "" if quality.low is None else f" ({quality.low:.3f}-{quality.high:.3f})".replace("0.", ".")
    return [
        model.name,
        f"{model.n_leaves:,}",
        f"{quality.value:.4f}{interval}",
        "" if difference is None else f"{difference.value:+.4f}".replace("0.", "."),
        "" if difference is None else p_or_dash(difference.p).replace("< 0.", "<."),
        number(model.timing.us_per_doc),
        f"{model.speed_up.value:.1f}x",
    ]


def _shown(result: ShrinkResult) -> str:
    """What validation data showed, for which the model was taken."""
    if not result.accepted:
        return f"{SHRUNK} is {NAME} itself: {result.summary()}."
    return (
        f"{SHRUNK} was chosen because validation data shows that {result.proof_in_words()}. It has "
        f"{result.chosen.n_leaves:,} of {result.rows[0].n_leaves:,} leaves and {result.chosen.n_features} of "
        f"{result.rows[0].n_features} features."
    )


def _tested(facts: ReportFacts, result: ShrinkResult) -> str:
    """What test data says of it, and how much faster it is."""
    from rankwood.lab.report.page import number

    base, shrunk = (_facts_of(facts, name) for name in (NAME, SHRUNK))
    proof = shrunk.difference[facts.measures[0]].proof
    if proof is None or not result.accepted:
        return ""
    return (
        f"On the test queries {proof.words()}. A document takes {number(shrunk.timing.us_per_doc)} instead of "
        f"{number(base.timing.us_per_doc)} us: {_times(base, shrunk)} as fast."
    )


def _against_rival(facts: ReportFacts) -> str:
    """Whether shrinking was worth it: the shrunk model beside the one that was small from the start."""
    from rankwood.lab.report.page import p_or_dash

    measure = facts.measures[0]
    shrunk, rival = (_facts_of(facts, name) for name in (SHRUNK, RIVAL))
    (pair,) = (
        one
        for one in facts.pairs
        if one.measure == measure and {facts.models[n].name for n in (one.first, one.second)} == {SHRUNK, RIVAL}
    )
    difference = shrunk.quality[measure].value - rival.quality[measure].value
    is_clear = pair.p is not None and pair.p <= 0.05
    than = "better" if difference > 0 else "worse"
    verdict = f"significantly {than} than" if is_clear else "neither significantly better nor worse than"
    p, faster = p_or_dash(pair.p), f"{_times(rival, shrunk)} as fast"
    return (
        f"{SHRUNK} is {verdict} {RIVAL}, the model that was small from the start ({difference:+.4f} of {measure}, "
        f"p {'' if p.startswith('<') else '= '}{p}), and {faster}."
    )


def _facts_of(facts: ReportFacts, name: str) -> ModelFacts:
    return next(model for model in facts.models if model.name == name)


def _times(slow: ModelFacts, fast: ModelFacts) -> str:
    """How many times as fast a model scores as another, in words."""
    return f"{slow.timing.us_per_doc / fast.timing.us_per_doc:.1f} times"


def next_commands() -> list[str]:
    """Commands to try next in the demo's folder, which work as they are."""
    return [
        f"rankwood shrink {NAME}.rw --train train.txt --valid valid.txt --test test.txt --factor 5 -o fifth.rw",
        f"rankwood evaluate {NAME}.rw {SHRUNK}.rw {RIVAL}.rw --data test.txt",
        f"rankwood bench {SHRUNK}.rw --data test.txt",
        f"rankwood convert {SHRUNK}.rw lightgbm.txt",
        f"rankwood verify {SHRUNK}.rw lightgbm.txt",
    ]


def print_next(out: Path) -> None:
    """Print where the report is, and commands to try next."""
    print_line()
    print_line(f"Open {out / 'report.html'} in a browser, or go on with:")
    for command in (f"cd {shlex.quote(str(out))}", *next_commands()):
        print_line(f"  {command}")
