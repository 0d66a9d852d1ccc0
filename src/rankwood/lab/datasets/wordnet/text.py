"""Text of the documents as base forms of words: titles, glosses, examples, and mentions in other glosses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankwood.lab.datasets.wordnet.database import Database
from rankwood.lab.datasets.wordnet.rules import digest

_STOP_WORDS = """
a about above after again all also among an and any are as at be because been being between both but by can
could did do does doing done during each either especially etc ever few for from get had has have having he
her hers him his how i if in into is it its itself just like made make makes making many may me might more
most much must my no nor not of off often on one or other our out over own same she should so some such than
that the their theirs them then there these they this those through to too under up upon us use used uses
using usually very was we were what when where which while who whom whose will with within without would you
your something someone somebody
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
LONGEST_PHRASE = 4  # words of a lemma that is looked for in glosses and queries
MOST_MENTIONS = 40  # documents whose titles are the mentions of another

Phrase = tuple[str, ...]
Words = list[list[str]]  # of every document

_TOKEN = re.compile(r"[a-z]+|[0-9]+")


class BaseForms(dict[str, str]):
    """Base forms of words by WordNet's own morphology, found on first use.

    An irregular form is looked up. Else an ending is replaced, and the result counts if it is in the index; a word
    that is itself a noun is not taken for the form of a verb.

    Parameters
    ----------
    words : mapping of str to set of str
        Words of the index, by part of speech.
    irregular : mapping of str to str
        Irregular forms.

    Examples
    --------
    >>> forms = BaseForms({"noun": {"dog", "bus"}, "verb": {"bake"}, "adj": set()}, {"geese": "goose"})
    >>> [forms[word] for word in ("dogs", "buses", "baking", "geese", "less")]
    ['dog', 'bus', 'bake', 'goose', 'less']
    """

    _ENDINGS = (
        ("noun", "ses:s xes:x zes:z ches:ch shes:sh men:man ies:y s:"),
        ("verb", "ies:y es:e es: ed:e ed: ing:e ing: s:"),
    )

    def __init__(self, words: Mapping[str, set[str]], irregular: Mapping[str, str]) -> None:
        super().__init__()
        self._words, self._irregular = words, irregular
        self._rules = [(part, *rule.split(":")) for part, rules in self._ENDINGS for rule in rules.split()]

    def __missing__(self, word: str) -> str:
        self[word] = base = self._find(word)
        return base

    def _find(self, word: str) -> str:
        if word in self._irregular and word not in self._words["adj"]:
            return self._irregular[word]
        if len(word) > 3 and not word.endswith("ss"):
            for part, ending, instead in self._rules:
                base = word.removesuffix(ending) + instead
                may_be = part == "noun" or word not in self._words["noun"]
                if may_be and word.endswith(ending) and base in self._words[part]:
                    return base
        return word


@dataclass(frozen=True)
class Texts:
    """Base forms of the words of every document; `lemmas` have all of them, the others no stop words.

    Parameters
    ----------
    lemmas : list of lists of tuples of str
        Every lemma as a phrase.
    titles, glosses, examples : list of lists of str
        Words of the lemmas, of the definition, of the examples.
    mentions : list of lists of str
        Titles of documents whose gloss has a lemma of this one, in whatever sense.
    n_mentions : array
        Number of such documents; `mentions` has 40 of them at most, drawn once for all.
    phrases : dict of tuples of str to list of int
        Documents that have a phrase as a lemma.
    """

    lemmas: list[list[Phrase]]
    titles: Words
    glosses: Words
    examples: Words
    mentions: Words
    n_mentions: np.ndarray
    phrases: dict[Phrase, list[int]]


def read_texts(database: Database) -> Texts:
    """Split the text of all documents into base forms, and find mentions."""
    forms = BaseForms(database.words, database.irregular)

    def words_of(text: str) -> list[str]:
        return [forms[word] for word in _TOKEN.findall(text.lower().replace("'s ", " "))]

    lemmas = [[tuple(words_of(lemma)) for lemma in synset.lemmas] for synset in database.synsets]
    phrases: dict[Phrase, list[int]] = defaultdict(list)
    for document, its_lemmas in enumerate(lemmas):
        for phrase in dict.fromkeys(its_lemmas):
            phrases[phrase].append(document)
    titles = [_telling([word for phrase in its_lemmas for word in phrase]) for its_lemmas in lemmas]
    glosses = [words_of(synset.gloss) for synset in database.synsets]
    examples = [_telling([word for one in synset.examples for word in words_of(one)]) for synset in database.synsets]
    mentioning = find_mentions(glosses, lemmas, phrases)
    turn = [digest("mention", document)[7::-1] for document in range(len(lemmas))]  # 8 bytes, the last one first
    some = [
        sorted(one, key=turn.__getitem__)[:MOST_MENTIONS] if len(one) > MOST_MENTIONS else one for one in mentioning
    ]
    return Texts(
        lemmas=lemmas,
        titles=titles,
        glosses=[_telling(gloss) for gloss in glosses],
        examples=examples,
        mentions=[[word for document in documents for word in titles[document]] for documents in some],
        n_mentions=np.array([len(documents) for documents in mentioning], np.float32),
        phrases=dict(phrases),
    )


def find_mentions(glosses: Words, lemmas: list[list[Phrase]], phrases: Mapping[Phrase, list[int]]) -> list[list[int]]:
    """For every document, those whose gloss has one of its lemmas that is not their own and not a stop word.

    Examples
    --------
    >>> lemmas = [[("dog",)], [("hot", "dog")], [("puppy",)]]
    >>> phrases = {("dog",): [0], ("hot", "dog"): [1], ("puppy",): [2]}
    >>> find_mentions([["an", "animal"], ["a", "sausage"], ["a", "hot", "dog"]], lemmas, phrases)
    [[2], [2], []]
    """
    mentioning: list[list[int]] = [[] for _ in glosses]
    for document, gloss in enumerate(glosses):
        found = {phrase for phrase in phrases_in(gloss) if phrase in phrases and phrase not in lemmas[document]}
        telling = [phrase for phrase in found if len(phrase) > 1 or phrase[0] not in STOP_WORDS]
        for other in {other for phrase in telling for other in phrases[phrase]}:
            mentioning[other].append(document)
    return mentioning


def phrases_in(words: list[str]) -> list[Phrase]:
    """Return all runs of at most four words.

    Examples
    --------
    >>> phrases_in(["hot", "dog"])
    [('hot',), ('hot', 'dog'), ('dog',)]
    """
    n = len(words)
    return [tuple(words[a:b]) for a in range(n) for b in range(a + 1, min(n, a + LONGEST_PHRASE) + 1)]


def _telling(words: list[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS]
