"""Splits: which synsets are queries of training, validation and test, in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.lab.datasets.wordnet.database import Synset
from rankwood.lab.datasets.wordnet.relations import Relations
from rankwood.lab.datasets.wordnet.rules import PARTS_OF_SPEECH, SHARES, SPLITS, Rules, digest


@dataclass(frozen=True)
class Plan:
    """Synsets to try as queries.

    Parameters
    ----------
    queries : list of lists of int
        For every split, in the order in which they are tried.
    n_groups, n_synsets, n_dropped : int
        Groups, synsets in them, and synsets left out because they are next to another split.
    """

    queries: list[list[int]]
    n_groups: int
    n_synsets: int
    n_dropped: int

    def facts(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return {
            "groups": self.n_groups,
            "synsets": self.n_synsets,
            "dropped_near_other_split": self.n_dropped,
            "usable": [len(synsets) for synsets in self.queries],
        }


def plan_splits(synsets: Sequence[Synset], relations: Relations, part: str, rules: Rules) -> Plan:
    """Give whole groups of synsets to the splits, and drop synsets that are next to one of another split.

    Parameters
    ----------
    synsets : sequence of Synset
    relations : Relations
    part : {"noun", "verb-adj"}
        Part of the data set.
    rules : Rules
    """
    chosen = [number for number, synset in enumerate(synsets) if synset.part in PARTS_OF_SPEECH[part]]
    group_of = find_groups(relations.above, rules.group)
    sizes = Counter(group_of[number] for number in chosen)
    split_of_group = _share_out(sizes, {group: synsets[group].file for group in sizes}, part)
    split_of = {number: split_of_group[group_of[number]] for number in chosen}
    below: dict[int, set[int]] = defaultdict(set)  # splits of what is directly below a synset
    for number, above in enumerate(relations.above):
        if number in split_of:
            for other in above:
                below[other].add(split_of[number])
    queries: list[list[int]] = [[] for _ in SPLITS]
    for number in sorted(chosen, key=lambda number: digest("synset", number)):
        near = {split_of.get(other) for other in relations.close[number] | relations.related[number]}
        near = near.union(*(below[other] for other in relations.above[number]))
        if near <= {split_of[number], None}:
            queries[split_of[number]].append(number)
    return Plan(queries, len(sizes), len(chosen), len(chosen) - sum(map(len, queries)))


def find_groups(above: Sequence[Sequence[int]], least: int) -> list[int]:
    """Cut the forest of synsets into connected groups of at least so many, and return the top of each synset's group.

    From the leaves upwards, a synset whose group is large enough is the top of it; the others join what is above them.
    Of several synsets above one the first counts. A group that ends at a root may be smaller.

    Examples
    --------
    >>> find_groups([[], [0], [1], [1], [0]], 3)
    [0, 1, 1, 1, 0]
    """
    parents = [min(others, default=-1) for others in above]
    depths = _depths(parents)
    upwards = sorted(range(len(parents)), key=lambda number: (-depths[number], number))
    weights, is_top = [1] * len(parents), [False] * len(parents)
    for number in upwards:
        is_top[number] = weights[number] >= least or parents[number] < 0
        if not is_top[number]:
            weights[parents[number]] += weights[number]
    groups = list(range(len(parents)))
    for number in reversed(upwards):
        if not is_top[number]:
            groups[number] = groups[parents[number]]
    return groups


def _depths(parents: Sequence[int]) -> list[int]:
    """Number of synsets above each one; circles are cut where they are met first."""
    depths = [-1] * len(parents)
    for start in range(len(parents)):
        path: dict[int, None] = {}  # in order
        number = start
        while number >= 0 and depths[number] < 0 and number not in path:
            path[number] = None
            number = parents[number]
        depth = depths[number] if number >= 0 else -1
        for number in reversed(path):
            depths[number] = depth = depth + 1
    return depths


def _share_out(sizes: Counter[int], files: dict[int, int], part: str) -> dict[int, int]:
    """Give each group to the split that lacks most among the groups of the same file, in a random order."""
    filled: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(len(SPLITS)))
    split_of = {}
    for group in sorted(sizes, key=lambda group: digest("group", part, group)):
        have = filled[files[group]]
        split = int(np.argmax(np.array(SHARES) * (have.sum() + sizes[group]) - have))
        split_of[group] = split
        have[split] += sizes[group]
    return split_of
