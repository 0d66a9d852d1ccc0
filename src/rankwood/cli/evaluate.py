"""`rankwood evaluate`: measures of one or several models, and whether they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankwood.cli.console import print_json, print_table
from rankwood.cli.models import AsJson, DataFiles, Threads, ZeroBased, load_data, load_models


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
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate models on data. Two or more models are also compared with the first, query by query."""
    from rankwood.evaluation.conventions import Convention
    from rankwood.evaluation.evaluator import compare_values
    from rankwood.evaluation.evaluator import evaluate as evaluate_model
    from rankwood.evaluation.measures import parse_measure
    from rankwood.evaluation.significance import holm

    chosen = Convention.get(convention)
    measures = list(dict.fromkeys(parse_measure(text) for text in measure or ["nDCG@10"]))
    loaded = load_models(models)
    dataset = load_data(data, loaded, zero_based=zero_based, n_threads=threads, quiet=as_json)
    results = [evaluate_model(m, dataset, measures, convention=chosen, n_threads=threads) for m in loaded.values()]

    baseline = next(iter(loaded))
    comparisons: list[dict[str, Any]] = [
        {"baseline": baseline, "model": name, **compare_values(results[0], result, one).as_dict()}
        for name, result in list(zip(loaded, results, strict=True))[1:]
        for one in result
    ]
    for comparison, adjusted in zip(comparisons, holm([c["p_randomisation"] for c in comparisons]), strict=True):
        comparison["p_holm"] = float(adjusted)

    if as_json:
        rows = [{"model": name, "measures": result.means} for name, result in zip(loaded, results, strict=True)]
        print_json({"convention": chosen.name, "models": rows, "comparisons": comparisons})
        return
    print_table(
        f"{dataset.n_queries:,} queries, {dataset.n_docs:,} documents",
        ["model", *map(str, measures)],
        [[name, *(f"{value:.4f}" for value in result.values())] for name, result in zip(loaded, results, strict=True)],
        caption=f"convention {chosen.describe()}",
    )
    if comparisons:
        print_table(
            f"Difference from {baseline}",
            [
                "model",
                "measure",
                "difference",
                "95 % interval",
                "p (randomisation)",
                "p (Holm)",
                "p (Wilcoxon)",
                "p (t)",
            ],
            [_comparison_row(comparison) for comparison in comparisons],
            caption="Paired tests over queries; Holm corrects the randomisation test for the number of rows.",
        )


def _comparison_row(c: dict[str, Any]) -> list[str]:
    low, high = c["interval"]
    p_values = [f"{c[key]:.4f}" for key in ("p_randomisation", "p_holm", "p_wilcoxon", "p_t")]
    return [c["model"], c["measure"], f"{c['difference']:+.4f}", f"{low:+.4f} .. {high:+.4f}", *p_values]
