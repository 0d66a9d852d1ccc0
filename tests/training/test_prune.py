"""Pruning while boosting: equation 6 of Asadi & Lin holds afterwards, and the deepest go first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rankwood.training.grow import GrowingTree, prune_to_balance


def chain(depth: int) -> GrowingTree:
    """Every left child is split again."""
    tree = GrowingTree(gain=[float(depth)], depth=[0], max_depth=depth)
    node = 0
    for level in range(1, depth + 1):
        tree.first_child[node] = node = len(tree.gain)
        tree.gain += [float(depth - level), 0.0]
        tree.depth += [level, level]
    return tree


@st.composite
def trees(draw) -> GrowingTree:
    tree = GrowingTree(gain=[1.0], depth=[0])
    leaves = [0]
    for _ in range(draw(st.integers(0, 30))):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        tree.first_child[node] = len(tree.gain)
        for child in (len(tree.gain), len(tree.gain) + 1):
            leaves.append(child)
            tree.gain.append(draw(st.floats(0, 1)))
            tree.depth.append(tree.depth[node] + 1)
        tree.max_depth = max(tree.max_depth, tree.depth[node] + 1)
    return tree


def true_depth(tree: GrowingTree) -> int:
    return max(tree.depth[leaf] for leaf in tree.walk()[1])


def is_full_enough(tree: GrowingTree, balance: float) -> bool:
    return 2 * len(tree.first_child) + 1 >= balance * (2 ** (true_depth(tree) + 1) - 1)


@given(trees(), st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0]))
def test_the_equation_holds_afterwards_and_not_a_step_before(tree, balance):
    splits = dict(tree.first_child)
    prune_to_balance(tree, balance)
    assert is_full_enough(tree, balance)
    assert tree.max_depth == true_depth(tree)
    removed = set(splits) - set(tree.first_child)
    assert all(child in removed for node in removed for child in (splits[node], splits[node] + 1) if child in splits)
    if removed:  # the last one to go was a deepest one; with it the tree was not full enough
        last = min(removed, key=lambda node: (tree.depth[node], -tree.gain[node]))
        tree.first_child[last] = splits[last]
        assert not is_full_enough(tree, balance)


def test_zero_never_prunes_and_one_leaves_a_perfect_tree():
    tree = chain(6)
    prune_to_balance(tree, 0.0)
    assert len(tree.first_child) == 6
    prune_to_balance(tree, 1.0)
    assert tree.first_child == {0: 1}
    assert tree.max_depth == 1


def test_a_chain_is_shortened_until_it_is_full_enough():
    tree = chain(6)  # 13 nodes; at depth d a chain has 2d + 1 of 2^(d+1) - 1
    prune_to_balance(tree, 0.2)
    assert tree.max_depth == 4  # 13 of 127 and 11 of 63 are below a fifth, 9 of 31 are not
    assert len(tree.first_child) == 4


def test_of_several_deepest_pairs_the_one_that_gained_least_goes():
    # A perfect tree of depth 2 with one more split below each of two leaves.
    tree = GrowingTree(
        gain=[9, 8, 7, 2.0, 0, 0, 3.0, 0, 0, 0, 0],
        depth=[0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
        first_child={0: 1, 1: 3, 2: 5, 3: 7, 6: 9},
        max_depth=3,
    )
    prune_to_balance(tree, 0.55)  # 11 nodes of 15 are enough
    assert 3 in tree.first_child
    prune_to_balance(tree, 0.75)  # 11 of 15 are not; 9 of 15 are not; 7 of 7 are
    assert set(tree.first_child) == {0, 1, 2}
    again = GrowingTree(
        gain=[9, 8, 7, 2.0, 0, 0, 3.0, 0, 0, 0, 0, 0, 0],
        depth=[0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3],
        first_child={0: 1, 1: 3, 2: 5, 3: 7, 6: 9, 4: 11},
        max_depth=3,
    )
    again.gain[4] = 1.0
    prune_to_balance(again, 0.8)  # 13 of 15 are enough
    assert len(again.first_child) == 6
