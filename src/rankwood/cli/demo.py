"""`rankwood demo`: train, prune, compare and time rankers on built-in data, and print what was found."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import print_line, print_table, print_text, progress, tell
from rankwood.cli.models import Threads
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.lab.report.facts import ModelFacts, ReportFacts

MEASURES = ("nDCG@10", "ERR", "AP")
RATES = (0.4, 0.6, 0.7, 0.8)  # shares of the trees that pruning tries to remove
PRUNING_QUERIES = 1500  # queries that weights are searched on, at most; models are judged by all
BALANCE = 0.2  # parameter `balance` of the learner that prunes each tree while boosting
XDART_LEARNING_RATE = 0.3
MARK = ".rankwood-demo"  # an empty file that marks a folder as the demo's own
COLUMNS = ("model", "trees", "nodes", f"{MEASURES[0]} (95 %)", "p", "us/doc", "speed-up")


@dataclass(frozen=True)
class Size:
    """Sizes of the demo's data and models.

    Parameters
    ----------
    n_queries, docs_per_query, n_features : int
        Shape of the data.
    n_trees, n_leaves, learning_rate : int, int, float
        Parameters of LambdaMART.
    xdart_trees : int
        Trees of X-DART.
    margin : float
        Loss of the measure on validation data that a pruned model must be shown not to have.
    """

    n_queries: int
    docs_per_query: int
    n_features: int
    n_trees: int
    n_leaves: int
    learning_rate: float
    xdart_trees: int
    margin: float


FULL = Size(6000, 40, 32, n_trees=400, n_leaves=64, learning_rate=0.03, xdart_trees=150, margin=0.01)
QUICK = Size(2000, 30, 20, n_trees=200, n_leaves=32, learning_rate=0.1, xdart_trees=60, margin=0.02)


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for data, models and the report.")] = Path(
        "rankwood-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Less data and smaller models: some seconds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of all that is drawn at random.")] = 0,
    threads: Threads = None,
) -> None:
    """Train rankers on built-in data, prune one, and compare what they are worth and what they cost.

    Four models: LambdaMART; the same with trees pruned while boosting (Asadi & Lin 2013); X-DART, which removes trees that are not missed (Lucchese et al. 2017); and the first one pruned by CLEaVER (Lucchese et al. 2016). The table is of held-out queries that none of them has seen. Takes half a minute on two cores, needs no network, and leaves data, models and an HTML report in a folder.
    """  # noqa: E501  typer keeps line ends
    start = time.monotonic()
    _take_folder(out)
    size = QUICK if quick else FULL
    tell(f"four rankers on synthetic data, in {out}: {'some seconds' if quick else 'half a minute'} on two cores")
    train, valid, test = _make_data(size, out, seed, threads)
    models = _train(size, train, valid, seed, threads)
    models["cleaver"] = _prune(size, models["lambdamart"], train, valid, seed, threads)
    for name, model in models.items():
        model.save(out / f"{name}.rw")
    facts = _look(models, test, out, threads)
    tell("")
    print_result(facts)
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
    from rankwood.data.synthetic import make_ranking

    data = make_ranking(size.n_queries, size.docs_per_query, size.n_features, seed=seed, n_threads=threads)
    train, rest = data.split(0.5, seed=0)
    parts = dict(zip(("train", "valid", "test"), (train, *rest.split(0.5, seed=0)), strict=True))
    with progress("writing data", unit="files") as advance:
        for number, (name, part) in enumerate(parts.items()):
            advance(number, len(parts))
            write_svmlight(part, out / f"{name}.txt")
    read = [read_svmlight(out / f"{name}.txt", n_features=data.n_features, n_threads=threads) for name in parts]
    tell(f"made {data.n_docs:,} documents of {data.n_queries:,} queries: to train 50 %, validate 25 %, test 25 %")
    return read[0], read[1], read[2]


def _train(size: Size, train: Dataset, valid: Dataset, seed: int, threads: int | None) -> dict[str, Ensemble]:
    """Three trained models by name."""
    from rankwood.cli.console import training_progress
    from rankwood.data.bins import BinnedDataset
    from rankwood.training.estimators import XDART, LambdaMART

    shape: dict[str, Any] = {"n_leaves": size.n_leaves, "early_stopping_rounds": 50, "random_state": seed}
    plain = {**shape, "n_trees": size.n_trees, "learning_rate": size.learning_rate, "n_jobs": threads}
    learners = {
        "lambdamart": LambdaMART(**plain),
        "balanced": LambdaMART(**plain, balance=BALANCE),
        "xdart": XDART(
            **shape, n_trees=size.xdart_trees, learning_rate=XDART_LEARNING_RATE, judge="valid", n_jobs=threads
        ),
    }
    how = {"balanced": ", each pruned before it joins", "xdart": ", {n_removed:,} of the {n_grown:,} it grew removed"}
    binned = BinnedDataset.make(train, n_threads=threads)
    models: dict[str, Ensemble] = {}
    for name, ranker in learners.items():
        start = time.monotonic()
        with training_progress(name) as callbacks:
            ranker.fit(binned, valid=valid, callbacks=callbacks)
        models[name] = ranker.ensemble_
        n_grown = ranker.best_iteration_  # early stopping cuts off what was grown later, which is not removing
        note = how.get(name, "").format(n_grown=n_grown, n_removed=n_grown - ranker.n_trees_)
        tell(f"trained {name}: {ranker.n_trees_:,} trees{note}, {time.monotonic() - start:.1f} s")
    return models


def _prune(size: Size, model: Ensemble, train: Dataset, valid: Dataset, seed: int, threads: int | None) -> Ensemble:
    """The smallest of several pruned models that is shown to lose less than the margin on validation data."""
    from rankwood.pruning.accept import Acceptance
    from rankwood.pruning.cleaver import cleaver
    from rankwood.pruning.pruner import PruningSettings

    start = time.monotonic()
    with progress("pruning", unit="searches") as advance:
        result = cleaver(
            model,
            train,
            valid,
            judge=0.5,
            rates=RATES,
            accept=Acceptance("non-inferior", margin=size.margin),
            settings=PruningSettings(max_queries=PRUNING_QUERIES, measure_speed=False, seed=seed),
            n_threads=threads,
            progress=advance,
        )
    seconds = time.monotonic() - start
    if result.accepted:
        tell(f"pruned lambdamart: {result.ensemble.n_trees:,} of {model.n_trees:,} trees stay, {seconds:.1f} s")
    else:
        tell(f"pruned lambdamart: nothing smaller was shown to be as good, so all trees stay, {seconds:.1f} s")
    return result.ensemble


def _look(models: dict[str, Ensemble], test: Dataset, out: Path, threads: int | None) -> ReportFacts:
    """Facts of the models on test data: measures, comparisons and times; also written as an HTML report."""
    from rankwood.atomic import atomic_write
    from rankwood.lab.report.page import render_page
    from rankwood.lab.report.write import gather

    with progress("comparing and timing", unit="steps") as advance:
        facts = gather(
            models,
            test,
            measures=MEASURES,
            title="rankwood demo: four rankers on synthetic data",
            n_threads=threads,
            on_step=lambda what, done, total: advance(done, total),
        )
    with atomic_write(out / "report.html", "w") as file:
        file.write(render_page(facts))
    return facts


def print_result(facts: ReportFacts) -> None:
    """Print the table of models, and what it means in a sentence or two."""
    from rankwood.lab.report.page import summarise

    timing = facts.base.timing
    print_table(
        f"On {facts.data['queries']:,} queries that no model has seen ({facts.data['documents']:,} documents)",
        COLUMNS,
        [_row(facts, model) for model in facts.models],
        caption=(
            f"p: randomisation test against {facts.base.name}, not corrected: a loss should show.",
            f"us/doc: one thread, {timing.batch:,} documents per call, sums in {timing.precision} precision.",
        ),
    )
    for sentence in summarise(facts):
        print_text(sentence)


def _row(facts: ReportFacts, model: ModelFacts) -> list[str]:
    from rankwood.lab.report.page import number, p_or_dash

    measure = facts.measures[0]
    quality, difference = model.quality[measure], model.difference.get(measure)
    interval = "" if quality.low is None else f" ({quality.low:.3f}-{quality.high:.3f})".replace("0.", ".")
    return [
        model.name,
        f"{model.n_trees:,}",
        f"{model.n_nodes:,}",
        f"{quality.value:.4f}{interval}",
        "" if difference is None else p_or_dash(difference.p).replace("< 0.", "<."),
        number(model.timing.us_per_doc),
        "" if model.speed_up is None else f"{model.speed_up:.1f}x",
    ]


def next_commands(out: Path) -> list[str]:
    """Commands to try next, which work as they are."""
    folder = shlex.quote(str(out))
    return [
        f"rankwood evaluate {folder}/lambdamart.rw {folder}/cleaver.rw --data {folder}/test.txt",
        f"rankwood inspect {folder}/cleaver.rw --data {folder}/test.txt",
        f"rankwood bench {folder}/cleaver.rw --data {folder}/test.txt",
        f"rankwood convert {folder}/cleaver.rw {folder}/lightgbm.txt",
        f"rankwood verify {folder}/cleaver.rw {folder}/lightgbm.txt",
    ]


def print_next(out: Path) -> None:
    """Print where the report is, and commands to try next."""
    print_line()
    print_line(f"Open {out / 'report.html'} in a browser, or go on with:")
    for command in next_commands(out):
        print_line(f"  {command}")
