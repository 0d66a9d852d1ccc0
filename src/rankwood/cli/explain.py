"""`rankwood explain`: what features contribute to the scores of a query, and why one document is above another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankwood.cli.console import print_json, print_table, tell
from rankwood.cli.models import (
    AsJson,
    DataFiles,
    Rename,
    Threads,
    ZeroBased,
    load_data,
    load_models,
    named_as_data,
    named_by_number,
    near_first,
    numbering,
    read_renames,
)
from rankwood.coding import category_of, value_in_words
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.explaining.contributions import Explanation, by_size
from rankwood.model.ensemble import Ensemble

WIDTH = 80  # characters of a table
LEAST_NAME = 12  # that a feature's name may have in it at least; --json has all of them
MOST_DOCUMENTS = 5  # of a query, side by side


def explain(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    data: DataFiles,
    query: Annotated[str, typer.Option("--query", metavar="ID", help="Id of the query.")],
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option("--pair", metavar="A B", help="Why document A is above document B: ids, or places in the query."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Features to show, those that contribute most.")] = 10,
    background: Annotated[
        list[Path] | None,
        typer.Option("--background", metavar="FILE", help="Explain against the documents of this data."),
    ] = None,
    counts_of: Annotated[
        list[Path] | None,
        typer.Option("--counts-of", metavar="FILE", help="Count this data at the leaves, for models without counts."),
    ] = None,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    rename: Rename = None,
    as_json: AsJson = False,
) -> None:
    """Explain scores: what each feature contributes to them (exact SHAP values), for the documents of one query.

    Contributions add up to the score. With --pair the table shows why one document is above another: the difference of their contributions, feature by feature. Documents are named by their ids in the data, or by their places among the documents of the query, from 1.

    Unknown features take both sides of a split, as much of each as training data did; with --background they have the values of other documents.
    """  # noqa: E501  typer keeps line ends
    from rankwood.explaining.contributions import explain as find

    models = named_as_data(load_models([model]), read_renames(rename))

    def read(files: list[Path]) -> Dataset:
        return load_data(files, models, exact=True, zero_based=zero_based, n_threads=threads, quiet=as_json)

    documents = _documents_of(read(data), query)
    (name,) = models
    ensemble = models[name]
    others = {
        option: None if files is None else _features(ensemble, read(files))
        for option, files in (("background", background), ("data", counts_of))
    }
    found = find(named_by_number(ensemble), _features(ensemble, documents), n_threads=threads, **others)
    labels = _names(documents)
    rows = None if pair is None else (_row_of(pair[0], labels), _row_of(pair[1], labels))
    if as_json:
        facts = {"model": name, "query": query, "base_value": found.base_value}
        print_json(
            facts | (_query_facts(found, documents, labels) if rows is None else _pair_facts(found, labels, *rows))
        )
    elif rows is None:
        _print_query(found, documents, labels, query, top, numbering(ensemble))
    else:
        _print_pair(found, labels, *rows, top, numbering(ensemble))
    if ensemble.exit is not None:
        tell("note: the model has early exit; what is explained is the sum of all its trees")


def _documents_of(data: Dataset, query: str) -> Dataset:
    ids = [str(one) for one in data.queries.ids.tolist()]
    if query not in ids:
        raise DataError(f"the data has no query {query!r}; there are: {near_first(query, ids)}")
    return data.query(ids.index(query))


def _features(model: Ensemble, data: Dataset) -> Any:
    from rankwood.evaluation.evaluator import aligned_features

    return aligned_features(model, data)


def _names(documents: Dataset) -> list[str]:
    """Names of documents: their ids, or their places in the query."""
    if documents.doc_ids is not None:
        return [str(one) for one in documents.doc_ids]
    return [str(place + 1) for place in range(documents.n_docs)]


def _row_of(text: str, labels: list[str]) -> int:
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and 1 <= int(text) <= len(labels):
        return int(text) - 1
    raise RankwoodError(
        f"--pair: the query has no document {text!r}; there are {len(labels)}, named {near_first(text, labels)}"
    )


def _print_query(
    found: Explanation, documents: Dataset, labels: list[str], query: str, top: int, numbered: str
) -> None:
    """The best documents side by side, a row per feature."""
    ranked = np.argsort(-found.scores, kind="stable")
    order = by_size(found.importance)[:top]
    signed = _signs(np.concatenate([found.values[:, order].ravel(), found.scores, [found.base_value]]))
    widest = max(len(signed(value)) for value in found.scores[ranked[:MOST_DOCUMENTS]])
    best = ranked[: min(MOST_DOCUMENTS, (WIDTH - LEAST_NAME) // (widest + 4))]
    rows = [["base value", *[signed(found.base_value)] * len(best)]]
    rows += [[found.feature_names[f], *(signed(found.values[row, f]) for row in best)] for f in order]
    if len(order) < len(found.feature_names):
        rest = found.values.sum(axis=1) - found.values[:, order].sum(axis=1)
        rows.append([_others(len(found.feature_names) - len(order)), *(signed(rest[row]) for row in best)])
    rows.append(["score", *(signed(found.scores[row]) for row in best)])
    if documents.has_labels:
        rows.append(["label", *(f"{documents.y[row]:g}" for row in best)])
    print_table(
        f"Query {query}: what features add to the scores of the best {len(best)} of {found.n_docs:,} documents",
        ["document", *(_cut(labels[row], max(widest, 5)) for row in best)],
        _fitted(rows),
        caption=("The features that add most in this query. Why A is above B: --pair A B", numbered),
    )


def _print_pair(
    found: Explanation,
    labels: list[str],
    above: int,
    below: int,
    top: int,
    numbered: str,
) -> None:
    """A row per feature: values of both documents, what they add, and the difference."""
    pair = found.pair(above, below)
    order = by_size(pair.difference)[:top]
    scores = found.scores[[above, below]]
    signed = _signs(np.concatenate([pair.values[:, order].ravel(), pair.difference, scores]))

    def cells(name: str, values: Iterable[str], given: FloatArray) -> list[str]:
        return [name, *values, *map(signed, given), signed(given[0] - given[1])]

    def in_words(feature: int) -> list[str]:
        return [value_in_words(value, pair.categories.get(feature, ()), 12) for value in pair.data[:, feature].tolist()]

    rows = [cells(pair.feature_names[f], in_words(f), pair.values[:, f]) for f in order.tolist()]
    if len(order) < len(pair.feature_names):
        rest = pair.values.sum(axis=1) - pair.values[:, order].sum(axis=1)
        rows.append(cells(_others(len(pair.feature_names) - len(order)), ["", ""], rest))
    rows.append(cells("score", ["", ""], scores))
    print_table(
        f"A: document {labels[above]}, B: document {labels[below]}; what tells them apart",
        ["feature", "A", "B", "to A", "to B", "A - B"],
        _fitted(rows),
        caption=("Values of A and B, what they add to both scores, and the difference.", numbered),
    )


def _others(n: int) -> str:
    return f"{n:,} other{'s' * (n != 1)}"


def _signs(values: FloatArray) -> Callable[[float], str]:
    """How to write contributions: with four digits of the largest, and as many decimals for all others."""
    exponent = math.floor(math.log10(np.abs(values).max(initial=0.0) or 1.0))
    if not -3 <= exponent <= 5:
        return lambda value: f"{value:+.2e}"
    return lambda value: f"{value:+.{max(0, 3 - exponent)}f}"


def _fitted(rows: list[list[str]]) -> list[list[str]]:
    """Rows whose first column is so narrow that the table fits the width, if the others let it."""
    others = sum(max(max(map(len, column)), 5) + 3 for column in list(zip(*rows, strict=True))[1:])
    return [[_cut(name, max(LEAST_NAME, WIDTH - others - 4)), *cells] for name, *cells in rows]


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 3]}..."


def _query_facts(found: Explanation, documents: Dataset, labels: list[str]) -> dict[str, Any]:
    return {
        "feature_names": list(found.feature_names),
        "documents": [
            {
                "document": labels[row],
                "score": float(found.scores[row]),
                **({"label": float(documents.y[row])} if documents.has_labels else {}),
                "contributions": found.values[row].tolist(),
            }
            for row in np.argsort(-found.scores, kind="stable").tolist()
        ],
    }


def _pair_facts(found: Explanation, labels: list[str], above: int, below: int) -> dict[str, Any]:
    pair = found.pair(above, below)
    return {
        "above": {"document": labels[above], "score": float(found.scores[above])},
        "below": {"document": labels[below], "score": float(found.scores[below])},
        "features": [
            {
                "feature": pair.feature_names[f],
                "values": [_plain_category(value, pair.categories.get(f, ())) for value in pair.data[:, f].tolist()],
                "contributions": pair.values[:, f].tolist(),
                "difference": float(pair.difference[f]),
            }
            for f in by_size(pair.difference).tolist()
        ],
    }


def _plain_category(value: float, known: Sequence[Any]) -> Any:
    """The category that a value is the code of, or the value as JSON can hold it."""
    category = category_of(value, known)
    return plain(value) if category is value else category


def plain(value: float) -> float | str | None:
    """A feature's value as JSON can hold it: a missing one is None, an infinite one a text."""
    if value != value:
        return None
    return value if abs(value) != float("inf") else str(value)
