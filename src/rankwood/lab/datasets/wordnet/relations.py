"""Grades: how close two synsets are by the relations that the lexicographers recorded.

Features and the choice of candidates see nothing of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.lab.datasets.wordnet.arrays import Lists, first_places, marked
from rankwood.lab.datasets.wordnet.database import Pointer, Synset
from rankwood.lab.datasets.wordnet.rules import Rules

# Symbols of pointers in the database.
UPWARDS = frozenset({"@", "@i"})  # hypernym, also of an instance
CLOSE = UPWARDS | frozenset({"~", "~i"})  # hyponym, also an instance
CLOSE |= frozenset({"#m", "#s", "#p", "%m", "%s", "%p"})  # member, substance and part, either way
CLOSE |= frozenset({"=", "!", "&", "+", "\\", "<"})  # attribute, antonym, similar, derivation, pertainym, participle
CLOSE |= frozenset({"*", ">", "$"})  # of verbs: entailment, cause, group
RELATED = frozenset({"^", ";c", "-c", ";u", "-u", ";r", "-r"})  # see also; topic, usage and region
FAMILY = frozenset({"+", "\\", "="})  # the word family in another part of speech
TOPIC = ";c"
NO_CLASS = 2.0  # stands for the share of a class when there is none; shares are 1 at most


class Relations:
    """Grades of documents for queries.

    A class is a synset with everything below it; its share is its size by the number of synsets of its part of speech.

    Parameters
    ----------
    synsets : sequence of Synset
    rules : Rules

    Attributes
    ----------
    above : list of lists of int
        Synsets directly above: hypernyms, the head of an adjective's cluster, and the noun that it describes.
    close, related : list of sets of int
        Synsets at the other end of a pointer, in either direction.
    """

    def __init__(self, synsets: Sequence[Synset], rules: Rules) -> None:
        n = len(synsets)
        self._rules = rules
        self.above = [[one.target for one in synset.pointers if _is_upwards(synset, one)] for synset in synsets]
        self.close, self.related = _both_ways(synsets, CLOSE), _both_ways(synsets, RELATED)
        classes = _classes(self.above)
        n_synsets = Counter(synset.part for synset in synsets)
        self._classes = Lists.of(sorted(one) for one in classes)  # that hold a synset
        sizes = np.bincount(self._classes.values, minlength=n)
        self._shares = sizes / np.array([n_synsets[synset.part] for synset in synsets])
        family: list[set[int]] = [set() for _ in synsets]
        for number, synset in enumerate(synsets):
            for symbol, other in synset.pointers:
                if symbol in FAMILY and synsets[other].part != synset.part:
                    family[number] |= classes[other]
                    family[other] |= classes[number]
        self._family_classes = Lists.of(sorted(one) or [n] for one in family)  # n: a class that never counts
        # Files of adjectives and adverbs are no topics: each of these is in a file of its own.
        self._files = np.array([one.file if one.part in "nv" else -1 - i for i, one in enumerate(synsets)])
        own_topics = [{one.target for one in synset.pointers if one.symbol == TOPIC} for synset in synsets]
        self._topics = [
            own.union(*(own_topics[other] for other in above))
            for own, above in zip(own_topics, self.above, strict=True)
        ]
        self._share_of_class = np.full(n + 1, NO_CLASS)

    def grades(self, query: int, documents: IndexArray) -> AnyArray:
        """Return the grades of documents for the query of a synset.

        4: a direct pointer; 3: two pointers in a small class, or a looser pointer; 2: a medium class, or two pointers,
        or the word family in a small class; 1: a large class, also by the word family, a file or a topic in common.
        """
        small, medium, large = self._rules.classes
        own, family = self._classes[query], self._family_classes[query]
        common = self._smallest(own, documents, self._classes)
        by_family = np.minimum(
            self._smallest(own, documents, self._family_classes), self._smallest(family, documents, self._classes)
        )
        numbers, topics = documents.tolist(), self._topics[query]

        def among(synsets: set[int]) -> AnyArray:
            return np.array([number in synsets for number in numbers])

        in_two = among(self._two_pointers_from(query))
        grades = np.zeros(len(documents), np.int8)
        grades[(common <= large) | (by_family <= large) | (self._files[documents] == self._files[query])] = 1
        if topics:
            grades[[number in topics or not topics.isdisjoint(self._topics[number]) for number in numbers]] = 1
        grades[(common <= medium) | (by_family <= small) | in_two] = 2
        grades[(in_two & (common <= small)) | among(self.related[query])] = 3
        grades[among(self.close[query])] = 4
        return grades

    def _smallest(self, classes: IndexArray, documents: IndexArray, classes_of: Lists) -> FloatArray:
        """Return the share of the smallest of some classes that holds a document, for every document."""
        known = classes[classes < len(self._shares)]
        with marked(self._share_of_class, known, self._shares[known]):
            shares = self._share_of_class[classes_of.values[classes_of.places(documents)]]
        smallest: FloatArray = np.minimum.reduceat(shares, first_places(classes_of.sizes(documents)))
        return smallest

    def _two_pointers_from(self, query: int) -> set[int]:
        """Return synsets two pointers away; from a hub, which has many pointers, only upwards."""
        found: set[int] = set()
        for bridge in self.close[query]:
            is_hub = len(self.close[bridge]) > self._rules.hub
            found.update(self.above[bridge] if is_hub else self.close[bridge])
        return found


def _is_upwards(synset: Synset, pointer: Pointer) -> bool:
    """Whether a pointer leads to what the synset belongs to."""
    if pointer.symbol in UPWARDS or (pointer.symbol == "&" and synset.is_satellite):
        return True
    return (synset.part == "a" and pointer.symbol in "=\\") or (synset.part == "r" and pointer.symbol == "\\")


def _both_ways(synsets: Sequence[Synset], symbols: frozenset[str]) -> list[set[int]]:
    """For every synset, those that it points to or that point to it with one of the symbols."""
    ends: list[set[int]] = [set() for _ in synsets]
    for number, synset in enumerate(synsets):
        for symbol, other in synset.pointers:
            if symbol in symbols:
                ends[number].add(other)
                ends[other].add(number)
    return ends


def _classes(above: list[list[int]]) -> list[set[int]]:
    """For every synset, itself and all that are above it, however far.

    The few circles in WordNet are cut where the search, which goes through the synsets in order, meets itself.

    Examples
    --------
    >>> _classes([[], [0], [1], [4], [3]])
    [{0}, {0, 1}, {0, 1, 2}, {3, 4}, {4}]
    """
    classes: list[set[int]] = [set() for _ in above]  # empty as long as it is not found
    is_begun = [False] * len(above)
    for start in range(len(above)):
        stack = [start]
        while stack:
            synset = stack[-1]
            if not is_begun[synset]:
                is_begun[synset] = True
                stack += [other for other in above[synset] if not is_begun[other]]
            else:
                stack.pop()
                if not classes[synset]:
                    classes[synset] = {synset}.union(*(classes[other] for other in above[synset]))
    return classes
