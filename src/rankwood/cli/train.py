"""`rankwood train`: learn a ranker from files."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from rankwood.cli.console import (
    fail,
    in_words,
    print_indented,
    print_json,
    print_table,
    print_text,
    progress,
    tell,
    training_progress,
)
from rankwood.cli.models import (
    AsJson,
    Dask,
    Shuffle,
    Threads,
    ZeroBased,
    are_tables,
    check_output,
    check_shuffle,
    dask_client,
    load_data,
)
from rankwood.coding import Coding
from rankwood.data.dataset import Dataset
from rankwood.errors import DataError, RankwoodError
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.data.bins import BinnedDataset
    from rankwood.training.checkpoint import Checkpoint
    from rankwood.training.names import Described


class Learner(str, Enum):
    """Names of learners on the command line."""

    mart = "mart"
    lambdamart = "lambdamart"
    dart = "dart"
    xdart = "xdart"
    igbrt = "igbrt"
    forest = "forest"


class LearnAs(str, Enum):
    """What labels are learnt as."""

    regression = "regression"
    ordinal = "ordinal"


# Parameters that have an option of their own, and are not given by -p.
OPTION_OF = {
    "random_state": "--seed",
    "n_jobs": "--threads",
    "measure": "--measure",
    "on_interrupt": "--keep-on-interrupt",
    "task": "--task",
    "forest": "--forest",
}


class TrainCommand(typer.core.TyperCommand):
    """`rankwood train`, whose help also has the parameters of learners, as their docstrings have them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[TrainCommand.__name__] = next((one for one in args if one in Learner.__members__), None)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        learner = ctx.meta.get(TrainCommand.__name__)
        if learner is not None:
            _print_parameters(learner)
            return
        print_text("Parameters (-p NAME=VALUE); `rankwood train LEARNER --help` has their defaults and meanings:")
        for name in Learner.__members__:
            print_indented(f"{name}: {', '.join(one.name for one in _given_by_p(name))}")


def _given_by_p(learner: str) -> list[Described]:
    """The parameters of a learner that `-p` takes."""
    from rankwood.training.names import described_parameters

    return [one for one in described_parameters(learner) if one.as_text and one.name not in OPTION_OF]


def _print_parameters(learner: str) -> None:
    print_text("Features are given by name, or by number from 0: feature 1 of SVMlight text is number 0.")
    print_text(f"Parameters of {learner}, with their defaults: -p NAME=VALUE")
    for one in _given_by_p(learner):
        print_text(f"{one.name}={'none' if one.default is None else one.default}")
        print_indented(one.meaning)


def train(
    learner: Annotated[Learner, typer.Argument(help="What to train.")],
    train: Annotated[list[Path], typer.Option("--train", help="Data to learn from. Several files are joined.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write.")],
    valid: Annotated[
        list[Path] | None, typer.Option("--valid", help="Data to measure on while learning, and to stop early by.")
    ] = None,
    test: Annotated[list[Path] | None, typer.Option("--test", help="Data to measure the finished model on.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--parameter", metavar="NAME=VALUE", help="Parameter of the learner, e.g. n_trees=500; listed below."
        ),
    ] = None,
    task: Annotated[
        LearnAs | None,
        typer.Option(help="mart, forest, igbrt: learn labels by regression, or how likely every grade is (ordinal)."),
    ] = None,
    forest: Annotated[
        Path | None, typer.Option(help="igbrt: model to start from, of any format; else a random forest is grown.")
    ] = None,
    initial_trees: Annotated[
        int | None, typer.Option(min=1, help="igbrt: trees of the forest that is grown; 1,000 unless given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.")] = 0,
    threads: Threads = None,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="What to measure, nDCG@10 unless given; stopping goes by the first."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Save the training here now and then, and go on from it if it exists.")
    ] = None,
    every: Annotated[int | None, typer.Option(min=1, help="Trees between checkpoints; 50 unless given.")] = None,
    keep_on_interrupt: Annotated[
        bool,
        typer.Option(
            "--keep-on-interrupt", help="After Ctrl-C, write the model learnt so far; the exit status is 130."
        ),
    ] = False,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features, when other data has more of them than --train.")
    ] = None,
    zero_based: ZeroBased = False,
    dask: Dask = None,
    shuffle: Shuffle = False,
    as_json: AsJson = False,
) -> None:
    """Train a ranker on ranking data: SVMlight/LETOR text (also .gz), CSV or Parquet.

    Boosted rankers leave features in the files, which may be larger than memory: a byte a value is kept.

    For instance: rankwood train lambdamart --train S1.txt S2.txt --valid S3.txt -p early_stopping_rounds=50 -o model.rw
    """
    from rankwood.training.checkpoint import Checkpoint

    check_output(output, train=train, valid=valid, test=test)
    _check_files(output, checkpoint, every)
    if learner is not Learner.igbrt and (forest is not None or initial_trees is not None):
        raise RankwoodError(f"{'--initial-trees' if forest is None else '--forest'} is for igbrt, not {learner.value}")
    ranker = make_learner(learner, parameter or [], OPTION_OF, task).set_params(
        random_state=seed,
        n_jobs=threads,
        measure=measure or ["nDCG@10"],
        on_interrupt="keep" if keep_on_interrupt else "raise",
    )
    if learner is Learner.igbrt:
        ranker.set_params(forest=_forest(forest, initial_trees, ranker))
    if getattr(ranker, "early_stopping_rounds", None) is not None and not valid:
        raise RankwoodError("early stopping needs validation data: give --valid")

    check_shuffle(shuffle, dask)

    in_files = dask is not None or learner not in (Learner.forest, Learner.igbrt)  # others need no more than bins
    reading: dict[str, Any] = {"zero_based": zero_based, "n_threads": threads, "in_files": in_files, "quiet": as_json}
    data: Any = train
    watched: Any = valid
    coding = _coding(ranker, train) if dask is None else None
    if coding is not None:
        reading["coding"] = coding
    if dask is None or not are_tables([*train, *(valid or ())]):  # workers read tables themselves
        data = load_data(train, n_features=features, **reading)
        watched = load_more(valid, data.n_features, reading)
    start = time.monotonic()
    kept = None if checkpoint is None else Checkpoint(checkpoint, every or 50)
    try:
        with dask_client(dask) as client:
            if client is not None:
                said = _fit_on(client, learner, ranker, data, watched, kept, shuffle=shuffle, quiet=as_json)
            else:
                learnt_from = _in_bins(ranker, data, quiet=as_json) if in_files else data
                said = _fit(learner, ranker, learnt_from, watched, kept, quiet=as_json)
    except KeyboardInterrupt:
        again = "" if checkpoint is None else f"; run the same command again to go on from {checkpoint}"
        fail(f"interrupted: no model was written{again}", 130)
    if dask is not None:
        reading["coding"] = ranker.ensemble_.coding
    held_out = load_more(test, ranker.n_features_in_, reading)
    files = {"train": train, "valid": valid, "test": test}
    names = {role: [path.name for path in paths] for role, paths in files.items() if paths}
    model = ranker.ensemble_.with_metadata(data=names)
    if coding is not None:
        model = model.with_metadata(categories=coding.as_note())
    model.save(output)

    if not as_json:
        for warning in said:
            tell(f"warning: {warning}")
        tell(f"{_summary(ranker)} in {in_words(time.monotonic() - start)}; wrote {output}")
    _report(ranker, model, output, held_out, as_json)
    if ranker.interrupted_:
        raise SystemExit(130)


def _coding(ranker: Any, train: list[Path]) -> Coding | None:
    """How categories in the training files become codes; the ranker gets their columns as its parameter."""
    from rankwood.training.inputs import training_coding, wanted_features
    from rankwood.training.params import checked_parameters

    if not are_tables(train) or not hasattr(ranker, "categorical_features"):
        return None
    given = checked_parameters(ranker).categorical_features
    coding = training_coding(train, given)
    if coding is not None:
        names, known = coding.feature_names, wanted_features(given)
        new = (column for column in coding.columns or () if not {column, names and names[column]} & known)
        ranker.set_params(categorical_features=[*(given or ()), *new])
    return coding


def _check_files(output: Path, checkpoint: Path | None, every: int | None) -> None:
    """Refuse a checkpoint that cannot be written, now and not when it is due."""
    from rankwood.atomic import check_writable

    if checkpoint is not None:
        check_writable(checkpoint)
        if checkpoint.resolve() == output.resolve():
            raise RankwoodError("--checkpoint and --output name the same file: give two")
    if every is not None and checkpoint is None:
        raise RankwoodError("--every says how often a checkpoint is saved: give --checkpoint, too")


def _in_bins(ranker: Any, data: Dataset, *, quiet: bool) -> Dataset | BinnedDataset:
    """The training data in bins, put there while progress is shown; as it is when `fit` must see the features first."""
    from rankwood.data.bins import BinnedDataset
    from rankwood.training.params import checked_parameters

    checked = checked_parameters(ranker)
    if data.has_features or checked.missing != "native" or checked.refit is not False:
        return data
    if checked.categorical_features is not None:  # their bins are others
        return data
    with progress("putting into bins", quiet=quiet) as advance:
        return BinnedDataset.make(data, checked.max_bins, n_threads=checked.n_jobs, progress=advance)


def _fit(
    learner: Learner,
    ranker: Any,
    data: Dataset | BinnedDataset,
    valid: Dataset | None,
    checkpoint: Checkpoint | None,
    *,
    quiet: bool,
) -> list[str]:
    """Fit the ranker while its progress is shown; returns the warnings."""
    if learner is Learner.igbrt and not isinstance(ranker.forest, Ensemble) and isinstance(data, Dataset):
        _grow_forest(ranker, data, checkpoint, quiet=quiet)
    # A forest of full depth has learnt its training data by heart: what it scores there says nothing.
    sets = {"train": None if learner is Learner.forest else data, "valid": valid}
    measured = {name: one for name, one in sets.items() if one is not None}
    with training_progress(learner.value, quiet=quiet) as callbacks, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ranker.fit(
            data,
            eval_set=list(measured.values()),
            eval_names=list(measured),
            callbacks=callbacks,
            checkpoint=checkpoint,
        )
    return [str(warning.message) for warning in said]


def _fit_on(
    client: Any,
    learner: Learner,
    ranker: Any,
    data: Any,
    valid: Any,
    checkpoint: Checkpoint | None,
    *,
    shuffle: bool,
    quiet: bool,
) -> list[str]:
    """Fit the ranker on the workers of a cluster while its progress is shown; returns the warnings."""
    if not quiet:
        tell(f"training on {len(client.nthreads())} workers")
    measured = {name: one for name, one in (("train", data), ("valid", valid)) if one is not None}
    if learner is Learner.forest:
        del measured["train"]
    with training_progress(learner.value, quiet=quiet) as callbacks, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        ranker.fit(
            data,
            eval_set=list(measured.values()),
            eval_names=list(measured),
            callbacks=callbacks,
            checkpoint=checkpoint,
            client=client,
            shuffle=shuffle,
        )
    return [str(warning.message) for warning in said]


def load_more(paths: list[Path] | None, n_features: int, reading: dict[str, Any]) -> Dataset | None:
    """Data to measure on, with the features of the training data; None without files."""
    if not paths:
        return None
    try:
        return load_data(paths, n_features=n_features, **reading)
    except DataError as error:
        raise DataError(str(error).replace("of n_features", "of --train: give --features")) from None


def _forest(path: Path | None, n_trees: int | None, ranker: Any) -> Any:
    """What igbrt starts from: a model, or a random forest to be grown."""
    from rankwood.formats.registry import load_model
    from rankwood.training.initial_forest import paper_forest

    if path is None:
        size = {} if n_trees is None else {"n_trees": n_trees}
        return paper_forest(**size, random_state=ranker.random_state, n_jobs=ranker.n_jobs)
    if n_trees is not None:
        raise RankwoodError(
            "--initial-trees is the size of a forest to grow, --forest one that is grown: give one of them"
        )
    return load_model(path)


def _grow_forest(ranker: Any, data: Dataset, checkpoint: Checkpoint | None, *, quiet: bool) -> None:
    """Fit the forest that igbrt starts from, before igbrt itself would, to show its progress."""
    from rankwood.training.initial_forest import fit_initial_forest

    if not quiet:
        tell(f"growing a forest of {ranker.forest.n_trees:,} trees to start from")
    with training_progress("forest", quiet=quiet) as callbacks:
        ranker.forest = fit_initial_forest(ranker.forest, ranker, data, checkpoint=checkpoint, callbacks=callbacks)


def make_learner(
    learner: Learner, parameters: list[str], option_of: Mapping[str, str], task: LearnAs | None = None
) -> Any:
    """The estimator, with the parameters that were given as text.

    Parameters
    ----------
    learner : Learner
        Which one.
    parameters : list of str
        Texts NAME=VALUE.
    option_of : mapping
        Parameters that are not given so, and the options of the command that they have instead.
    task : LearnAs or None, default None
        What labels are learnt as, if it is given by an option.
    """
    from rankwood.training.names import learner_class
    from rankwood.training.params import read_parameter

    kind, given = learner_class(learner.value), dict[str, Any]()
    if task is not None:
        if not hasattr(kind, "task"):
            raise RankwoodError(f"--task is for mart, forest and igbrt, not for {learner.value}")
        given["task"] = task.value
    for text in parameters:
        name = text.partition("=")[0].strip()
        if name in option_of:
            raise RankwoodError(f"{name} has an option of its own: {option_of[name]}")
        name, given[name] = read_parameter(kind, text)
    return kind(**given)


def _summary(ranker: Any) -> str:
    """How the training ended, in a few words."""
    n_rounds = max(
        (len(values) for by_measure in ranker.evals_result_.values() for values in by_measure.values()), default=0
    )
    n_dropped = max(0, n_rounds - ranker.best_iteration_) * (len(getattr(ranker, "classes_", (0, 1))) - 1)
    n_kept = ranker.n_trees_
    if hasattr(ranker, "log_"):
        trees = f"{n_kept:,} trees in {_dropout(ranker)['iterations']:,} iterations, "
        trees += f"{_dropout(ranker)['trees_removed']:,} removed again"
        trees += f", the best after {ranker.best_iteration_:,}," if ranker.best_iteration_ < len(ranker.log_) else ""
    else:
        trees = f"{n_kept:,} trees" + (f", the best of {n_kept + n_dropped:,}," if n_dropped else "")
    values = [
        f"{measure} {value:.4f} on {name}"
        for name, by_measure in ranker.best_score_.items()
        for measure, value in list(by_measure.items())[:1]
    ]
    if getattr(ranker, "oob_evaluation_", None) is not None:
        measure, value = next(iter(ranker.oob_evaluation_.items()))
        values.append(f"{measure} {value:.4f} out of the bag")
    reached = f" with {', '.join(values)}" if values else ""
    if n_judges := _dropout(ranker).get("judge_queries"):
        reached += f" (without the {n_judges:,} queries that judged removals)"
    return f"{'interrupted: kept' if ranker.interrupted_ else 'trained'} {trees}{reached}"


def _dropout(ranker: Any) -> dict[str, Any]:
    """Iterations of a training that drops trees, trees that it removed, and validation queries that judged alone."""
    log = getattr(ranker, "log_", None)
    if log is None:
        return {}
    judges = getattr(ranker, "judge_queries_", None)
    return {
        "iterations": len(log),
        "trees_removed": sum(len(step.dropped) for step in log if step.removed),
        "judge_queries": 0 if judges is None else len(judges),
    }


def _out_of_bag(ranker: Any) -> dict[str, Any]:
    evaluation = getattr(ranker, "oob_evaluation_", None)
    return {} if evaluation is None else {"out_of_bag": evaluation.means}


def _report(ranker: Any, model: Ensemble, output: Path, held_out: Dataset | None, as_json: bool) -> None:
    """Measures on held-out data: a table, or everything as JSON."""
    from rankwood.evaluation.evaluator import evaluate

    result = None
    if held_out is not None:
        result = evaluate(model, held_out, ranker.measure, convention=ranker.convention, n_threads=ranker.n_jobs)
    if as_json:
        print_json(
            {
                "model": str(output),
                "n_trees": ranker.n_trees_,
                "best_iteration": ranker.best_iteration_,
                "interrupted": ranker.interrupted_,
                "valid": ranker.best_score_.get("valid", {}),
                **_out_of_bag(ranker),
                **_dropout(ranker),
                "measures": {} if result is None else result.means,
            }
        )
    elif result is not None and held_out is not None:
        print_table(
            f"{held_out.n_queries:,} queries, {held_out.n_docs:,} documents for testing",
            ["model", *result],
            [[output.name, *(f"{value:.4f}" for value in result.values())]],
            caption=f"convention {result.convention.describe()}",
        )
