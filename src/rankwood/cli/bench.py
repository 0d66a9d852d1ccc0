"""`rankwood bench`: the time that each engine takes to score with a model on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankwood.cli.console import fail, print_json, print_line, print_table, progress, tell
from rankwood.cli.models import (
    AsJson,
    DataFiles,
    PrecisionName,
    Rename,
    ZeroBased,
    load_data,
    load_models,
    named_as_data,
    read_renames,
)
from rankwood.errors import RankwoodError
from rankwood.lab.report.page import number
from rankwood.scoring.timing import FEWEST_CALLS, Bench
from rankwood.system import active_isa, available_isas


def bench(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    data: DataFiles,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="Engine to time, or auto; repeat for several. All that can score the model unless given."),
    ] = None,
    batch: Annotated[
        list[str] | None,
        typer.Option(help="Documents per call, or all; repeat for several. 1, 10, 100, 1000 and all unless given."),
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of a call.")] = 1,
    precision: Annotated[
        PrecisionName, typer.Option(help="What sums of leaf values are held in: float32 is faster.")
    ] = PrecisionName.double,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=FEWEST_CALLS,
            help="Timed calls per figure. Unless given: 20 and 0.2 s of them at least, fewer when that takes over 2 s.",
        ),
    ] = None,
    zero_based: ZeroBased = False,
    rename: Rename = None,
    as_json: AsJson = False,
) -> None:
    """Time scoring engines on data, after checking that they agree: microseconds per document by size of batch.

    Each call is timed on its own, as Python sees it, from a float32 matrix in memory to scores. Figures are lower quartiles of calls, their 95 % intervals go by order statistics (binomial). On one thread the time of a call is wall-clock or CPU time, whichever is less.

    Warm: call after call, each on other documents. Cold: before each call a buffer of twice the largest cache (64 MB if its size is unknown) is written through, so that model, rows and code come from memory.

    A model with early exit is also timed with it, on batches of whole queries of the data.

    Nothing is pinned to a CPU; a warning tells when the machine was busy. Exit status 1: an engine disagrees with the reference, in leaves or in any bit of a score.
    """  # noqa: E501  typer keeps line ends
    from rankwood.evaluation.evaluator import aligned_features
    from rankwood.scoring.engines import get_engine
    from rankwood.scoring.timing import BATCHES
    from rankwood.scoring.timing import bench as time_engines

    for name in engine or ():
        if name != "auto":
            get_engine(name)  # an unknown engine is refused before any work
    sizes = BATCHES if not batch else [_size(text) for text in batch]
    models = named_as_data(load_models([model]), read_renames(rename))
    dataset = load_data(data, models, zero_based=zero_based, queries="optional", quiet=as_json)
    ((name, ensemble),) = models.items()
    rows = aligned_features(ensemble, dataset)
    with progress("timing", unit="cells", quiet=as_json) as advance:
        result = time_engines(
            ensemble,
            rows if ensemble.exit is None or dataset.order is None else rows[dataset.order],
            engine or None,
            sizes,
            group=np.diff(dataset.offsets),
            precision=precision.value,
            n_threads=threads,
            repeats=repeats,
            progress=advance,
        )
    topology = ensemble.topology()
    if as_json:
        shape = {key: getattr(topology, key) for key in ("n_trees", "n_leaves", "n_features", "max_leaves")}
        print_json({"model": name, **result.as_dict(), **shape, **_machine()})
        raise SystemExit(0 if result.agree else 1)
    if not result.agree:
        fail("; ".join(map(str, result.disagreements)), 1)
    for size in result.skipped:
        tell(f"note: the data has {result.n_docs:,} documents, so there is no batch of {size:,}")
    print_line(f"{name}: {topology.n_trees:,} trees, {topology.n_leaves:,} leaves, {topology.n_features:,} features")
    _print_machine(result)
    _print_times(result, [] if batch else ["100", "10"])
    _print_preparation(result)
    if result.exits:
        _print_exits(result)


def _size(text: str) -> int | None:
    """Documents per call; None for all."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise RankwoodError(f"--batch takes a number of documents or 'all', got {text!r}")
    return int(text)


def _machine() -> dict[str, Any]:
    """Facts of the machine and versions, for the JSON and the printed head."""
    import platform

    from rankwood._version import __version__
    from rankwood.system import cpu_name

    return {
        "cpu": cpu_name(),
        "isa": active_isa(),
        "available_isas": available_isas(),
        "versions": {"rankwood": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }


def _print_machine(result: Bench) -> None:
    facts = _machine()
    threads = "1 thread" if result.n_threads == 1 else f"{result.n_threads} threads"
    print_line(f"{facts['cpu']}, {threads}, not pinned; sums in {result.precision} precision")
    print_line(f"instruction set {facts['isa']} (this CPU can run: {', '.join(facts['available_isas'])})")
    print_line(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))


def _print_times(result: Bench, details: list[str]) -> None:
    batches = [cell.batch for cell in result.engines[0].cells]
    rows = []
    for times in result.engines:
        rows.append([times.engine, "warm", *(number(cell.warm.us_per_doc) for cell in times.cells)])
        rows.append(["", "95 %", *(f"{number(cell.warm.low)}-{number(cell.warm.high)}" for cell in times.cells)])
        rows.append(["", "cold", *(number(cell.cold.us_per_doc) for cell in times.cells if cell.cold)])
        if times.engine == "auto":
            rows.append(["", "takes", *(cell.chosen for cell in times.cells)])
    fastest = result.fastest()
    if len(result.engines) > 1 and fastest:
        rows.append(["fastest", "warm", *(fastest[batch] for batch in batches)])
    compared = "all" if result.n_compared == result.n_docs else f"{result.n_compared:,}"
    print_table(
        "Microseconds per document, by number of documents per call",
        ["engine", "", *(f"all {batch:,}" if batch == result.n_docs else f"{batch:,}" for batch in batches)],
        rows,
        caption=(
            f"Scores of {compared} documents agree with the reference in every bit.",
            f"Cold: after writing through {result.evicted_bytes >> 20:,} MB.",
        ),
        details=details,
        n_keys=2,
    )


def _print_exits(result: Bench) -> None:
    assert result.trees_evaluated is not None
    print_table(
        "Early exit: microseconds per document, warm, calls of whole queries",
        ["engine", "documents", "with exit", "95 %", "without", "faster"],
        [
            [
                times.engine,
                f"{times.exit.batch:,}",
                number(times.exit.us_per_doc),
                f"{number(times.exit.low)}-{number(times.exit.high)}",
                number(times.plain.us_per_doc),
                f"{times.plain.us_per_doc / times.exit.us_per_doc:.2f}x",
            ]
            for times in result.exits
        ],
        caption=f"Documents go through {100 * result.trees_evaluated:.1f} % of the trees, on average. "
        "`rankwood evaluate` tells the loss.",
        details=["95 %"],
    )


def _print_preparation(result: Bench) -> None:
    print_table(
        "Preparation",
        ["engine", "seconds", "memory"],
        [
            [
                times.engine,
                f"{times.prepare_s:.4f}" + (" (compiled before)" if times.from_cache else ""),
                f"{times.n_bytes / 1e6:,.2f} MB",
            ]
            for times in result.engines
        ],
    )
    for name, reason in result.unavailable.items():
        print_line(f"{name} cannot score this model: {reason}")
