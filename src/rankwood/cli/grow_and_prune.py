"""`rankwood grow-and-prune`: learn a model of a given size, chosen from more trees than it holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import fail, print_json, print_table, tell
from rankwood.cli.models import (
    AsJson,
    ByConvention,
    ByStrategy,
    NewModel,
    Seed,
    Threads,
    ZeroBased,
    check_output,
    load_data,
)
from rankwood.cli.options import takes_options
from rankwood.cli.prune import VictimsBy
from rankwood.cli.train import Learner, load_more, make_learner

if TYPE_CHECKING:
    from rankwood.evaluation.evaluator import Evaluation
    from rankwood.model.ensemble import Ensemble
    from rankwood.pruning.grow_and_prune import Stage

# Parameters that have an option of their own, and are not given by -p.
OPTION_OF = {"random_state": "--seed", "n_jobs": "--threads", "n_trees": "--size, and --grow for a stage"}


@dataclass(frozen=True)
class GrowAndPruneOptions:
    """Arguments and options of `rankwood grow-and-prune`, in the order of its help."""

    learner: Annotated[Learner, typer.Argument(help="What grows the trees: any but forest.")]
    train: Annotated[
        list[Path],
        typer.Option("--train", help="Data to grow trees and to search weights on. Several files are joined."),
    ]
    valid: Annotated[list[Path], typer.Option("--valid", help="Data to choose trees and weights by.")]
    size: Annotated[int, typer.Option(min=1, help="Trees of the model, at most.")]
    output: NewModel
    test: Annotated[list[Path] | None, typer.Option("--test", help="Data to measure the finished model on.")] = None
    grow: Annotated[int, typer.Option(min=1, help="Trees that a stage grows.")] = 100
    keep: Annotated[int, typer.Option(min=1, help="Trees that a stage adds to the model.")] = 50
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Parameter of the learner, e.g. n_leaves=16."),
    ] = None
    strategy: ByStrategy = "quality-loss"
    victims: Annotated[
        VictimsBy, typer.Option(help="The data that the strategy looks at: valid, or train as in the paper.")
    ] = VictimsBy.valid
    measure: Annotated[str, typer.Option("--measure", "-m", help="What to raise.")] = "nDCG@10"
    convention: ByConvention = "rankwood"
    iterations: Annotated[int, typer.Option(min=0, help="Iterations of a line search, at most.")] = 100
    patience: Annotated[int, typer.Option(min=1, help="Iterations without a better validation measure.")] = 20
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="At most so many queries of --train and of --valid, drawn at random.")
    ] = None
    seed: Seed = 0
    threads: Threads = None
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features, when other data has more of them than --train.")
    ] = None
    zero_based: ZeroBased = False
    as_json: AsJson = False


@takes_options
def grow_and_prune(options: GrowAndPruneOptions) -> None:
    """Boost some trees, prune so that a part of them is added, and repeat until the model has the size asked for.

    For instance: rankwood grow-and-prune lambdamart --train train.txt --valid vali.txt --size 200 -o model.rw
    """
    from rankwood.evaluation.evaluator import evaluate
    from rankwood.pruning.grow_and_prune import grow_and_prune as run_stages

    grow = _arguments(options)  # mistakes are named before files are read
    reading: dict[str, Any] = {"zero_based": options.zero_based, "n_threads": options.threads, "quiet": options.as_json}
    train = load_data(options.train, n_features=options.features, **reading)
    valid, test = (load_more(paths, train.n_features, reading) for paths in (options.valid, options.test))
    assert valid is not None
    n_stages = -(-options.size // options.keep)
    done: list[Stage] = []

    def on_stage(stage: Stage) -> None:
        done.append(stage)
        if not options.as_json:
            tell(
                f"stage {len(done)} of {n_stages}: {stage.n_grown:,} trees with {options.measure} "
                f"{stage.valid_grown:.4f} on valid, pruned to {stage.n_trees:,} with {stage.valid:.4f}"
            )

    try:
        model, stages = run_stages(train=train, valid=valid, on_stage=on_stage, **grow)
    except KeyboardInterrupt:
        fail("interrupted: no model was written", 130)
    files = {"train": options.train, "valid": options.valid, "test": options.test}
    model = model.with_metadata(data={role: [path.name for path in paths] for role, paths in files.items() if paths})
    model.save(options.output)
    result = None
    if test is not None:
        result = evaluate(model, test, options.measure, convention=options.convention, n_threads=options.threads)
    _report(options, model, stages, result)


def _arguments(options: GrowAndPruneOptions) -> dict[str, Any]:
    """Keywords of `grow_and_prune`, but for the data."""
    from rankwood.evaluation.conventions import Convention
    from rankwood.evaluation.measures import parse_measure
    from rankwood.pruning.grow_and_prune import check_stages
    from rankwood.pruning.line_search import LineSearch
    from rankwood.pruning.pruner import PruningSettings
    from rankwood.pruning.strategies import Chooser

    check_output(options.output, train=options.train, valid=options.valid, test=options.test)
    learner = make_learner(options.learner, options.parameter or [], OPTION_OF)
    learner.set_params(random_state=options.seed, n_jobs=options.threads)
    check_stages(learner, options.size, options.grow, options.keep)
    Chooser(options.strategy, 0)  # refuses names that are not strategies
    parse_measure(options.measure)
    Convention.get(options.convention)
    return {
        "learner": learner,
        "size": options.size,
        "grow": options.grow,
        "keep": options.keep,
        "measure": options.measure,
        "convention": options.convention,
        "strategy": options.strategy,
        "settings": PruningSettings(
            victims=options.victims.value,
            search=LineSearch(iterations=options.iterations, patience=options.patience),
            max_queries=options.max_queries,
            seed=options.seed,
        ),
        "n_threads": options.threads,
    }


def _report(options: GrowAndPruneOptions, model: Ensemble, stages: list[Stage], result: Evaluation | None) -> None:
    """Print the stages, and the measure on test data if there is any, as a table or as JSON."""
    if options.as_json:
        print_json(
            {
                "model": str(options.output),
                "n_trees": model.n_trees,
                "n_leaves": model.n_leaves,
                "measure": options.measure,
                "convention": options.convention,
                "valid": stages[-1].valid,
                "test": None if result is None else next(iter(result.values())),
                "stages": [asdict(stage) for stage in stages],
            }
        )
        return
    rows = [
        [f"{number}", f"{stage.n_grown:,}", f"{stage.valid_grown:.4f}", f"{stage.n_trees:,}", f"{stage.valid:.4f}"]
        for number, stage in enumerate(stages, start=1)
    ]
    tested = "" if result is None else f"; on test data {next(iter(result.values())):.4f}"
    print_table(
        f"{options.measure} on validation data, strategy {options.strategy}",
        ["stage", "trees grown", "before", "trees kept", "after"],
        rows,
        caption=f"{model.n_trees:,} trees, {model.n_leaves:,} leaves{tested}. Convention {options.convention}.",
    )
    tell(f"wrote {options.output}")
