"""A tree as C functions: nested if-else that return the number of the leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# What one function holds. Compilers take longer than linear time for long functions, and need not take more than 127
# nested blocks (C99; clang stops at 256). Only a left turn nests: what follows a `return` needs no else.
MAX_NODES = 512
MAX_NESTING = 40


@dataclass(frozen=True)
class Splits:
    """Inner nodes of one tree as plain lists, each with its condition for going left as C text."""

    condition: list[str]
    left: list[int]
    right: list[int]


def tree_functions(number: int, splits: Splits) -> list[str]:
    """Lines of C: the function `tree_<number>`, before it those for subtrees that are too deep or too large for it.

    >>> print(*tree_functions(7, Splits(["x[0] <= 1.0f", "x[2] <= 3.0f"], [-1, -2], [1, -3])), sep=chr(10))
    static int32_t tree_7(const real *x) {
      if (x[0] <= 1.0f) return 0;
      return x[2] <= 3.0f ? 1 : 2;
    }
    """
    if not splits.condition:
        return [f"static int32_t tree_{number}(const real *x) {{", "  (void)x;", "  return 0;", "}"]
    order = _parents_first(splits)
    cut = _find_cuts(splits, order)

    def result(child: int) -> str | None:
        """What to return when a document turns to a child; None: look at more splits first."""
        if child < 0:
            return str(~child)
        return f"tree_{number}_from_{child}(x)" if child in cut else None

    lines: list[str] = []
    for root in reversed([node for node in order if node in cut]):  # a function stands before its callers
        name = f"tree_{number}_from_{root}" if root else f"tree_{number}"
        lines += [f"static int32_t {name}(const real *x) {{", *_statements(splits, root, result), "}"]
    return lines


def _parents_first(splits: Splits) -> list[int]:
    order, pending = [], [0]
    while pending:
        node = pending.pop()
        order.append(node)
        pending += [child for child in (splits.right[node], splits.left[node]) if child >= 0]
    return order


def _find_cuts(splits: Splits, order: list[int]) -> set[int]:
    """Nodes where a function of their own starts, the root among them; found from the leaves up."""
    cut = {0}
    n_nodes, nesting = [0] * len(order), [0] * len(order)  # of what a function that starts there would hold
    for node in reversed(order):
        children = [child for child in (splits.left[node], splits.right[node]) if child >= 0]
        while 1 + sum(n_nodes[child] for child in children) > MAX_NODES:
            largest = max(children, key=n_nodes.__getitem__)
            children.remove(largest)
            cut.add(largest)
        if splits.left[node] in children and nesting[splits.left[node]] == MAX_NESTING:
            children.remove(splits.left[node])
            cut.add(splits.left[node])
        n_nodes[node] = 1 + sum(n_nodes[child] for child in children)
        nesting[node] = max((nesting[child] + (child == splits.left[node]) for child in children), default=0)
    return cut


def _statements(splits: Splits, root: int, result: Callable[[int], str | None]) -> list[str]:
    """The body of a function. Written with a stack of its own: a tree may be deeper than Python's."""
    lines: list[str] = []
    pending: list[tuple[int | None, int]] = [(root, 1)]  # a node and how deep it nests; None ends a block
    while pending:
        node, depth = pending.pop()
        indent = "  " * depth
        if node is None:
            lines.append(f"{indent}}}")
            continue
        value = None if node == root else result(node)
        if value is not None:
            lines.append(f"{indent}return {value};")
            continue
        condition, left, right = splits.condition[node], splits.left[node], splits.right[node]
        on_left, on_right = result(left), result(right)
        if on_left is not None and on_right is not None:
            lines.append(f"{indent}return {condition} ? {on_left} : {on_right};")
        elif on_left is not None:
            lines.append(f"{indent}if ({condition}) return {on_left};")
            pending.append((right, depth))
        else:
            lines.append(f"{indent}if ({condition}) {{")
            pending += [(right, depth), (None, depth), (left, depth + 1)]
    return lines
