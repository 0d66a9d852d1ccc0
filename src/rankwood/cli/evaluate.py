"""`rankwood evaluate`: measures of one or several models, and tests of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import print_json, print_table
from rankwood.cli.models import (
    AsJson,
    Dask,
    DataFiles,
    Rename,
    Threads,
    ZeroBased,
    dask_client,
    load_data,
    load_models,
    named_as_data,
    read_renames,
    width_of,
)

if TYPE_CHECKING:
    from rankwood.data.dataset import Dataset
    from rankwood.evaluation.conventions import Convention
    from rankwood.evaluation.evaluator import Evaluation
    from rankwood.model.ensemble import Ensemble


def evaluate(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Model files; the first is the baseline.")],
    data: DataFiles,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="Such as nDCG@10, ERR@20, AP, RR@10, P(rel=2)@5.")
    ] = None,
    convention: Annotated[
        str,
        typer.Option(
            help="Whose numbers: rankwood, lightgbm, xgboost, quickrank, ranklib, letor, yahoo, trec, sklearn."
        ),
    ] = "rankwood",
    threads: Threads = None,
    dask: Dask = None,
    zero_based: ZeroBased = False,
    rename: Rename = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate models on data. Two or more models are also compared with the first, query by query.

    Models with early exit are evaluated with it; how many trees that takes, and what it loses, is told beside.

    Data may be larger than memory: large files are read block by block, once for every model. A folder stands for the Parquet files in it. With --dask workers read them; they must see the files, and rows of a query must follow each other.
    """  # noqa: E501  typer keeps line ends
    from rankwood.data.partitions import data_files
    from rankwood.evaluation.conventions import Convention
    from rankwood.evaluation.evaluator import evaluate as evaluate_model
    from rankwood.evaluation.measures import parse_measure

    chosen = Convention.get(convention)
    measures = list(dict.fromkeys(parse_measure(text) for text in measure or ["nDCG@10"]))
    loaded = named_as_data(load_models(models), read_renames(rename))
    files = data_files(data)
    if dask is not None:
        results, n_docs = _on_cluster(loaded, files, measures, chosen, threads, dask, zero_based)
        _print(results, {}, n_docs, chosen, as_json)
        return
    whole = chosen.ties == "docno" or any(model.exit is not None for model in loaded.values())  # names, whole queries
    in_files = not whole and is_large(files)
    how: dict[str, Any] = {"zero_based": zero_based, "n_threads": threads, "in_files": in_files, "quiet": as_json}
    dataset = load_data(files, loaded, exact=True, **how)
    results = {
        name: evaluate_model(model, dataset, measures, convention=chosen, n_threads=threads)
        for name, model in loaded.items()
    }
    exits = {
        name: _exit(model, results[name], evaluate_model(model.replace(exit=None), dataset, measures,
                                                         convention=chosen, n_threads=threads), dataset, threads)
        for name, model in loaded.items()
        if model.exit is not None
    }  # fmt: skip
    _print(results, exits, dataset.n_docs, chosen, as_json)


def is_large(files: Sequence[Path]) -> bool:
    """Whether the data in files may be too large for memory: unpacked it takes several times their size."""
    from rankwood.system import available_memory

    memory = available_memory()
    return memory is not None and MOST_SWELLING * sum(file.stat().st_size for file in files) > memory


MOST_SWELLING = 16


def _on_cluster(
    models: dict[str, Ensemble],
    files: list[Path],
    measures: list[Any],
    convention: Convention,
    threads: int | None,
    dask: str,
    zero_based: bool,
) -> tuple[dict[str, Evaluation], int]:
    """Evaluations by name of the model, and the number of documents, by the workers of a Dask cluster."""
    from rankwood.evaluation.partitions import evaluate_files
    from rankwood.formats.registry import widen

    width, is_open = width_of(models)
    with dask_client(dask) as client:
        found = evaluate_files(
            [widen(model, width) for model in models.values()], files, measures, convention=convention,
            n_threads=threads, client=client, zero_based=zero_based, beyond="ignore" if is_open else "error",
        )  # fmt: skip
    return dict(zip(models, found.evaluations, strict=True)), found.n_docs


def _print(
    results: dict[str, Evaluation], exits: dict[str, Any], n_docs: int, convention: Convention, as_json: bool
) -> None:
    """Print measures, what early exit does, and comparisons."""
    comparisons = _comparisons(results)
    if as_json:
        rows = [
            {"model": name, "measures": result.means, **({"exit": exits[name]} if name in exits else {})}
            for name, result in results.items()
        ]
        print_json({"convention": convention.name, "models": rows, "comparisons": comparisons})
        return
    first = next(iter(results.values()))
    n_queries = len(next(iter(first.per_query.values())))
    print_table(
        f"{n_queries:,} queries, {n_docs:,} documents",
        ["model", *first],
        [[name, *(f"{value:.4f}" for value in result.values())] for name, result in results.items()],
        caption=f"convention {convention.describe()}",
    )
    if exits:
        _print_exits(exits)
    if comparisons:
        _print_comparisons(comparisons)


def _exit(
    model: Ensemble, result: Evaluation, without: Evaluation, data: Dataset, threads: int | None
) -> dict[str, Any]:
    """What early exit does: the share of trees evaluated, and measures without it and lost by it."""
    from rankwood.evaluation.evaluator import share_of_trees

    return {
        "trees_evaluated": share_of_trees(model, data, n_threads=threads),
        "measures_without": without.means,
        "loss": {measure: without[measure] - result[measure] for measure in result},
    }


def _print_exits(exits: dict[str, dict[str, Any]]) -> None:
    print_table(
        "Early exit",
        ["model", "trees", "measure", "with exit", "without", "diff."],
        [
            [
                name,
                f"{100 * found['trees_evaluated']:.1f} %",
                measure,
                f"{without - found['loss'][measure]:.4f}",
                f"{without:.4f}",
                f"{round(-found['loss'][measure], 4) + 0.0:+.4f}",
            ]
            for name, found in exits.items()
            for measure, without in found["measures_without"].items()
        ],
        caption="trees: those that a document goes through, on average, of all trees.",
        details=["without", "with exit"],
    )


def _comparisons(results: dict[str, Evaluation]) -> list[dict[str, Any]]:
    """Comparison of every model but the first with the first, by measure."""
    from rankwood.evaluation.evaluator import compare_values
    from rankwood.evaluation.significance import holm

    (baseline, first), *others = results.items()
    comparisons: list[dict[str, Any]] = [
        {"baseline": baseline, "model": name, **compare_values(first, result, measure).as_dict()}
        for name, result in others
        for measure in result
    ]
    for comparison, adjusted in zip(comparisons, holm([c["p_randomisation"] for c in comparisons]), strict=True):
        comparison["p_holm"] = float(adjusted)
    return comparisons


def _print_comparisons(comparisons: list[dict[str, Any]]) -> None:
    p_values = {"p_randomisation": "p", "p_holm": "p (Holm)", "p_wilcoxon": "p (Wilcoxon)", "p_t": "p (t)"}
    rows = []
    for c in comparisons:
        low, high = c["interval"]
        change = [f"{c['difference']:+.4f}", f"{low:+.4f} .. {high:+.4f}"]
        rows.append([c["model"], c["measure"], *change, *(f"{c[key]:.4f}" for key in p_values)])
    print_table(
        f"Difference from {comparisons[0]['baseline']}",
        ["model", "measure", "diff.", "95 % interval", *p_values.values()],
        rows,
        caption="Paired tests over queries. p: randomisation test; Holm corrects it for the rows of this table, `demo` "
        "and `report` for all pairs of models.",
        details=["p (t)", "p (Wilcoxon)", "p (Holm)", "95 % interval"],
    )
