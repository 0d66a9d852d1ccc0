"""`rankwood inspect`: size and shape of a model, and which parts of it data uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankwood.cli.console import print_json, print_line, print_table, tell
from rankwood.cli.models import (
    AsJson,
    Rename,
    Threads,
    ZeroBased,
    growth,
    load_data,
    load_models,
    named_as_data,
    named_by_number,
    numbering,
    read_renames,
)
from rankwood.errors import RankwoodError
from rankwood.model.early_exit import EarlyExit
from rankwood.model.ensemble import Ensemble
from rankwood.model.topology import SUMMARY, Topology
from rankwood.model.visits import Usage

TOP_FEATURES = 10
LONGEST_NOTE = 60  # characters shown of a metadata entry; --json has all of them


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data", metavar="FILE...", help="Also tell what scoring this data looks at. Files as for `score`."
        ),
    ] = None,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    rename: Rename = None,
    categories: Annotated[
        bool, typer.Option("--categories", help="Show only the codes of categories, by which the model knows them.")
    ] = False,
    tree: Annotated[
        int | None, typer.Option("--tree", metavar="N", help="Show only this tree, as text: from 0, or from the end.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the topology of a model: trees, nodes, depth, features used, size.

    With --data also what scoring looks at: the share of features per document, path lengths, and hot nodes.
    """
    from rankwood.evaluation.evaluator import aligned_features
    from rankwood.model.visits import usage as find_usage

    models = named_as_data(load_models([model]), read_renames(rename))
    ((name, ensemble),) = models.items()
    if categories:
        _print_categories(name, ensemble, as_json)
        return
    if tree is not None:
        _print_tree(name, named_by_number(ensemble), tree, as_json)
        if not as_json and numbering(ensemble):
            tell(f"note: {numbering(ensemble)}")
        return
    topology = ensemble.topology()
    size = {"file_bytes": model.stat().st_size}
    usage = None
    if data:
        dataset = load_data(data, models, zero_based=zero_based, n_threads=threads, queries="optional", quiet=as_json)
        ensemble = models[name]
        usage = find_usage(ensemble, aligned_features(ensemble, dataset), n_threads=threads)
    if as_json:
        seen = {} if usage is None else {"data": usage.as_dict()}
        stops = {} if ensemble.exit is None else {"exit": ensemble.exit.as_dict()}
        print_json({"model": name, **topology.as_dict(), **size, **stops, "metadata": ensemble.metadata, **seen})
        return
    print_table(name, ["property", "value"], _properties(ensemble, topology, size), caption=growth(ensemble))
    # Only of features that splits use: there may be millions of others.
    names = {f: _name(ensemble, f) for f in np.unique(ensemble.feature).tolist()}
    _print_features(ensemble, topology, names)
    if usage is not None:
        _print_usage(usage, topology, names)


def _properties(ensemble: Ensemble, topology: Topology, size: dict[str, int]) -> list[list[str]]:
    """Names and values of what is told of a model: its size and shape, how it stops early, its notes."""
    shown = {key: getattr(topology, key) for key in SUMMARY} | size
    rows = [[_words(key), _show(value)] for key, value in shown.items()]
    if ensemble.exit is not None:
        rows += _exit_rows(ensemble.exit)
    for key, value in ensemble.metadata.items():
        if key == "learning_curves":  # long, and meant for `rankwood report`
            continue
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [[f"{_words(key)} {name}".strip(), _note(entry)] for name, entry in inner]
    return rows


def _print_features(ensemble: Ensemble, topology: Topology, names: Mapping[int, str]) -> None:
    """The features that most splits look at."""
    used = np.argsort(-topology.splits_per_feature, kind="stable")[: min(TOP_FEATURES, topology.n_features_used)]
    print_table(
        "Features most often split on",
        ["feature", "splits", "share", "distinct thresholds"],
        [
            [
                names[f],
                f"{topology.splits_per_feature[f]:,}",
                f"{100 * topology.splits_per_feature[f] / topology.n_nodes:.1f} %",
                f"{topology.thresholds_per_feature[f]:,}",
            ]
            for f in used
        ],
        caption=numbering(ensemble),
        details=["distinct thresholds", "share"],
    )


def _print_tree(name: str, ensemble: Ensemble, tree: int, as_json: bool) -> None:
    """One tree as indented text, or its nodes as JSON."""
    from rankwood.explaining.conditions import TreeNotes, tree_number
    from rankwood.explaining.listing import COLUMNS, dump_tree, tree_rows

    number = tree_number(ensemble, tree)
    if not as_json:
        for line in dump_tree(ensemble, number).splitlines():
            print_line(line)
        return
    rows = tree_rows(ensemble, number, TreeNotes(ensemble))
    nodes = [dict(zip(COLUMNS, map(_plain, row), strict=True)) for row in rows]
    print_json({"model": name, "tree": number, "weight": float(ensemble.tree_weights[number]), "nodes": nodes})


def _plain(value: Any) -> Any:
    """An entry of a table as JSON can hold it: an absent number is None, an infinite one a text."""
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value


def _print_categories(name: str, ensemble: Ensemble, as_json: bool) -> None:
    """The categories of each feature; the place of a category, from 0, is its code."""
    coding = ensemble.coding
    if coding is None:
        raise RankwoodError(f"{name} does not list categories: the numbers in data are what its splits look at")
    if coding.columns is None:  # LightGBM does not tell which ones have ordered categories
        features = [f"category column {number + 1}" for number in range(len(coding.lists))]
    else:
        features = [_name(ensemble, column) for column in coding.columns]
    if as_json:
        print_json({"model": name, "categories": dict(zip(features, map(list, coding.lists), strict=True))})
        return
    rows = [
        [feature, str(code), str(category)]
        for feature, known in zip(features, coding.lists, strict=True)
        for code, category in enumerate(known)
    ]
    print_table(name, ["feature", "code", "category"], rows, caption="Anything else is missing: NaN.")


def _exit_rows(rule: EarlyExit) -> list[list[str]]:
    """What early exit does, checkpoint by checkpoint."""
    if rule.never:
        return [["early exit", "never"]]
    return [
        [
            f"exit after {n:,} trees",
            f"more than {margin:.6g} below number {rule.top}" if np.isfinite(margin) else "never",
        ]
        for n, margin in zip(rule.checkpoints, rule.margins, strict=True)
    ]


def _name(ensemble: Ensemble, feature: int) -> str:
    return f"feature {feature + 1}" if ensemble.feature_names is None else ensemble.feature_names[feature]


def _print_usage(usage: Usage, topology: Topology, names: Mapping[int, str]) -> None:
    touched, spread = float(usage.features_touched.mean()), usage.features_touched_std / max(1, topology.n_features)
    depths = f"{usage.splits_per_tree:.2f} per tree", f"{usage.splits_per_doc:,.1f} in all trees"
    longest = f"{topology.mean_depth:.2f} per tree", f"{topology.path_length:,} in all trees"
    print_table(
        f"Scoring {usage.n_docs:,} documents, on average",
        ["property", "value"],
        [
            ["features looked at", f"{touched:.1f} of {topology.n_features:,}"],
            ["share of all features", f"{_percent(usage.features_touched_share)} (sd {_percent(spread)})"],
            ["share of the features with splits", _percent(usage.features_touched_share_of_used)],
            ["splits met", ", ".join(depths)],
            ["longest paths, for comparison", ", ".join(longest)],
            ["inner nodes met by some document", f"{usage.n_nodes_met:,} of {topology.n_nodes:,}"],
            ["visits on the hottest 1 % of nodes", _percent(usage.share_of_hottest(0.01))],
            ["visits on the hottest 10 % of nodes", _percent(usage.share_of_hottest(0.1))],
            ["visits that go left", _percent(usage.left_share)],
            ["visits on the node's likelier side", _percent(usage.likelier_share)],
        ],
        caption="Asadi and Lin (2013) found that plain LambdaMART looks at 95.6 % of all features.",
    )
    print_table(
        "Hottest nodes below the roots, which every document meets",
        ["feature", "threshold", "tree", "node", "documents", "go left"],
        [
            [
                names[hot.feature],
                f"{hot.threshold:.6g}" + (f" and {hot.further:,} more" if hot.further else ""),
                str(hot.tree),
                str(hot.node),
                _percent(hot.share),
                _percent(hot.left_share),
            ]
            for hot in usage.hot_nodes(TOP_FEATURES)
        ],
        details=["node", "tree", "go left"],
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _words(key: str) -> str:
    return "inner nodes" if key == "n_nodes" else re.sub(r"\bn_", "", key).replace("_", " ")


def _note(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_NOTE else f"{text[:LONGEST_NOTE]}..."


def _show(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
