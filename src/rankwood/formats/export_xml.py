"""Trees as RankLib and QuickRank write them: `<split>` elements within each other, features numbered from 1."""

from __future__ import annotations

from collections.abc import Callable

from rankwood.ensemble import Ensemble


def xml_tree(
    model: Ensemble, tree: int, threshold: Callable[[int], str], output: Callable[[int], str], *, indent: str = "\t\t"
) -> list[str]:
    """Lines of one tree; `threshold` and `output` give the texts of a node's threshold and of a leaf's value, numbered
    in the whole model. One element per line, and nothing else: RankLib counts them."""
    first, first_leaf = int(model.node_offsets[tree]), int(model.leaf_offsets[tree])
    nodes = slice(first, int(model.node_offsets[tree + 1]))
    left, right, features = (array[nodes].tolist() for array in (model.left, model.right, model.feature))
    lines: list[str] = []
    root = 0 if left else -1
    pending: list[tuple[int, int, str]] = [(root, 0, "")]  # child, depth, position; position "/" closes
    while pending:
        child, depth, position = pending.pop()
        space = indent + "\t" * depth
        if position == "/":
            lines.append(f"{space}</split>")
            continue
        lines.append(f"{space}<split{position}>")
        pending.append((child, depth, "/"))
        if child < 0:
            lines.append(f"{space}\t<output> {output(first_leaf + ~child)} </output>")
            continue
        node = first + child
        lines.append(f"{space}\t<feature> {features[child] + 1} </feature>")
        lines.append(f"{space}\t<threshold> {threshold(node)} </threshold>")
        pending.append((right[child], depth + 1, ' pos="right"'))
        pending.append((left[child], depth + 1, ' pos="left"'))
    return lines
