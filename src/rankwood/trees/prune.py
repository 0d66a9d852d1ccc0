"""Pruning while boosting: Asadi & Lin (2013, section 3.2)."""

from __future__ import annotations

from rankwood.trees.tree import GrowingTree


def prune_to_balance(tree: GrowingTree, balance: float) -> None:
    """Collapse the deepest leaves until the tree is full enough for its depth: equation 6.

    While the number of nodes is below `balance` (their alpha) times that of a perfect tree of the same depth, the
    deepest pair of sibling leaves becomes one leaf again; of several, the one whose split gained least. 0 never
    prunes, 1 leaves a perfect tree.
    """
    n_nodes = 2 * len(tree.first_child) + 1
    while tree.first_child and n_nodes < balance * (2 ** (tree.max_depth + 1) - 1):
        # The parents of the deepest leaves: both children of such a parent are leaves.
        parents = [node for node in tree.first_child if tree.depth[node] == tree.max_depth - 1]
        victim = min(parents, key=lambda node: (tree.gain[node], -node))
        del tree.first_child[victim]
        n_nodes -= 2
        if len(parents) == 1:
            tree.max_depth -= 1
