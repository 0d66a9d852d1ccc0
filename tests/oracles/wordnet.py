"""Slow twins of WordNet-LTR: candidates, features and grades, a document at a time, after the words of its page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rankwood.lab.datasets.wordnet.database import Synset
from rankwood.lab.datasets.wordnet.rules import Rules
from rankwood.lab.datasets.wordnet.text import Texts

STREAMS = ("lemmas", "gloss", "examples", "mentions", "whole")


class Collection:
    def __init__(self, synsets: Sequence[Synset], texts: Texts, rules: Rules) -> None:
        self.synsets, self.texts, self.rules = synsets, texts, rules
        single = (texts.titles, texts.glosses, texts.examples, texts.mentions)
        every = (*single, [[word for stream in single for word in stream[d]] for d in range(len(synsets))])
        self.words = dict(zip(STREAMS, every, strict=True))
        self.n = len(synsets)
        self.order = list(dict.fromkeys(word for stream in every[:3] for words in stream for word in words))
        self.df = {s: Counter(word for words in self.words[s] for word in set(words)) for s in STREAMS}
        self.total = {s: Counter(word for words in self.words[s] for word in words) for s in STREAMS}
        lengths = {s: [len(words) for words in self.words[s] if words] for s in STREAMS}
        self.mean = {s: sum(lengths[s]) / len(lengths[s]) for s in STREAMS}
        self.vectors()

    def idf(self, stream: str, word: str) -> float:
        df = self.df[stream][word]
        return math.log(1 + (self.n - df + 0.5) / (df + 0.5))

    def bm25(self, query: list[str], d: int, stream: str = "whole") -> float:
        words, score = self.words[stream][d], 0.0
        for q in query:
            tf = words.count(q)
            score += self.idf(stream, q) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(words) / self.mean[stream]))
        return score

    def candidates(self, query: list[str], without: int) -> tuple[set[int], list[int]] | None:
        """The candidates, and the first by BM25."""
        matching = [d for d in range(self.n) if d != without and set(query) & set(self.words["whole"][d])]
        if len(matching) < self.rules.fewest // 2:
            return None
        score = {d: round(self.bm25(query, d), 4) for d in matching}
        ranked = sorted(matching, key=lambda d: (-score[d], d))[: self.rules.most]
        near = [d for d in ranked if score[d] >= self.rules.near_best * score[ranked[0]]]
        return set(ranked[: max(self.rules.fewest, len(near))]), ranked[: self.rules.feedback]

    # -- random indexing, by dense matrices

    def vectors(self) -> None:
        place = {word: i for i, word in enumerate(self.order)}
        idf = np.array([self.idf("whole", word) for word in self.order])

        def counted(texts: Sequence[Sequence[str]]) -> np.ndarray:
            counts = np.zeros((self.n, len(self.order)))
            for d, words in enumerate(texts):
                for word in words:
                    counts[d, place[word]] += 1
            return counts

        titles, glosses, examples, mentions = (counted(self.words[s]) for s in STREAMS[:4])
        text = titles + glosses + examples
        weighted = unit(text * idf)
        random = np.random.default_rng(20060815).integers(-1, 2, (len(self.order), 256))
        terms = unit(weighted.T @ (weighted @ random))
        terms = unit(terms - terms.mean(0)) * idf[:, None]
        self.term_vector = dict(zip(self.order, terms, strict=True))
        heads = counted([words[:2] for words in self.words["gloss"]])
        parts = {"text": text, "lemmas": titles, "gloss": glosses, "head": heads, "mentions": mentions}
        self.vector = {name: unit(counts @ terms) for name, counts in parts.items()}

    # -- features

    def features(self, query: list[str], d: int, best: list[int]) -> dict[str, float]:
        """Features by name; `query` is all its words, of which those in the vocabulary count."""
        terms = [word for word in dict.fromkeys(query) if word in self.order]
        out: dict[str, float] = {}
        for stream in STREAMS:
            out |= {f"{stream}_{name}": value for name, value in self.of_stream(stream, terms, d).items()}
        return out | self.similarities(terms, d, best) | self.matches(query, terms, d) | self.alone(d)

    def of_stream(self, stream: str, terms: list[str], d: int) -> dict[str, float]:
        words = self.words[stream][d]
        n, n_words = len(words), max(len(words), 1)
        tf = np.array([words.count(t) for t in terms], float)
        idf = np.array([self.idf(stream, t) for t in terms])
        all_words = sum(self.total[stream].values()) + 0.5 * len(self.order)
        p = np.array([(self.total[stream][t] + 0.5) / all_words for t in terms])
        norm = math.sqrt(sum((c * self.idf(stream, w)) ** 2 for w, c in Counter(words).items()))
        mu = 2 * self.mean[stream]
        out = {
            "covered_terms": (tf > 0).sum(), "covered_ratio": (tf > 0).mean(), "length": n,
            "idf_covered": idf[tf > 0].sum(), "tf_sum": tf.sum(), "tf_max": tf.max(), "tf_mean": tf.mean(),
            "tf_var": tf.var(), "tfidf_sum": (tf * idf).sum(), "tfidf_max": (tf * idf).max(),
            "tfidf_mean": (tf * idf).mean(), "tfidf_var": (tf * idf).var(),
        }  # fmt: skip
        if not words:
            return out | dict.fromkeys(("ntf_sum", "cosine", "bm25", "lm_abs", "lm_dir", "lm_jm"), math.nan)
        left = 0.7 * len(set(words)) / n
        return out | {
            "ntf_sum": tf.sum() / n_words,
            "cosine": (tf * idf * idf).sum() / (norm * math.sqrt((idf**2).sum())),
            "bm25": self.bm25(terms, d, stream),
            "lm_abs": sum(math.log(max(c - 0.7, 0) / n + left * q) for c, q in zip(tf, p, strict=True)),
            "lm_dir": sum(math.log((c + mu * q) / (n + mu)) for c, q in zip(tf, p, strict=True)),
            "lm_jm": sum(math.log(0.7 * c / n + 0.3 * q) for c, q in zip(tf, p, strict=True)),
        }

    def similarities(self, terms: list[str], d: int, best: list[int]) -> dict[str, float]:
        of_terms = [self.term_vector[t] for t in terms]
        query = unit(sum(of_terms)[None])[0]
        single = [unit(v[None])[0] for v in of_terms]
        mine = {name: vectors[d] for name, vectors in self.vector.items()}
        each = np.array([mine["text"] @ v for v in single])
        rarest = max(range(len(terms)), key=lambda i: (self.idf("whole", terms[i]), -i))
        gloss, mentions = bool(self.words["gloss"][d]), bool(self.words["mentions"][d])
        out = {
            "ri_cosine_text": mine["text"] @ query, "ri_cosine_lemmas": mine["lemmas"] @ query,
            "ri_cosine_gloss": mine["gloss"] @ query if gloss else math.nan,
            "ri_cosine_head": mine["head"] @ query if gloss else math.nan,
            "ri_cosine_mentions": mine["mentions"] @ query if mentions else math.nan,
            "ri_first_lemmas": mine["lemmas"] @ single[0],
            "ri_first_head": mine["head"] @ single[0] if gloss else math.nan,
            "ri_rarest_text": each[rarest], "ri_last_text": each[-1],
            "ri_term_min": each.min(), "ri_term_max": each.max(), "ri_term_var": each.var(),
        }  # fmt: skip
        others = [b for b in best if b != d]
        for name in ("text", "lemmas", "head"):
            centre = sum((self.vector[name][b] for b in others), np.zeros(256))
            out[f"feedback_ri_{name}"] = mine[name] @ unit(centre[None])[0]
        seen = Counter(word for b in best for word in self.words["gloss"][b])

        def weight(word: str) -> float:
            return math.log(seen[word]) * self.idf("whole", word) if word in seen else 0.0

        of_lemmas = [word for lemma in self.texts.lemmas[d] for word in lemma]
        for name, words in (("gloss", self.words["gloss"][d]), ("lemmas", of_lemmas)):
            out[f"feedback_{name}"] = sum(map(weight, words)) / max(len(words), 1)
        return out

    def matches(self, query: list[str], terms: list[str], d: int) -> dict[str, float]:
        mine = trigrams(" ".join(query))
        theirs = set().union(*(trigrams(lemma.lower()) for lemma in self.synsets[d].lemmas))
        gloss, lemmas = self.words["gloss"][d], [lemma for lemma in self.texts.lemmas[d] if lemma]
        at = [(place, terms.index(word)) for place, word in enumerate(gloss) if word in terms]
        gaps = [q - p for (p, s), (q, t) in pairwise(at) if s != t]
        runs = {tuple(query[a:b]) for a in range(len(query)) for b in range(a + 1, min(a + 4, len(query)) + 1)}
        matched = [self.idf("whole", t) for t in terms if t in self.words["whole"][d]]
        return {
            "tri_jaccard": len(mine & theirs) / len(mine | theirs), "tri_in_query": len(mine & theirs) / len(mine),
            "tri_in_lemmas": len(mine & theirs) / len(theirs),
            "gloss_ordered_bigrams": sum(q == p + 1 and t == s + 1 for (p, s), (q, t) in pairwise(at)),
            "gloss_min_gap": min(gaps, default=math.nan),
            "gloss_first_match": at[0][0] if at else math.nan,
            "gloss_head_idf": sum(self.idf("whole", word) for word in gloss[:3] if word in terms),
            "lemma_phrase_terms": max((len(lemma) for lemma in lemmas if lemma in runs), default=0),
            "lemma_best_cover": max((sum(w in terms for w in lemma) / len(lemma) for lemma in lemmas), default=0),
            "whole_boolean_and": len(matched) == len(terms), "matched_idf_max": max(matched, default=0),
            "query_terms": len(terms), "query_idf_sum": sum(self.idf("whole", t) for t in terms),
        }  # fmt: skip

    def alone(self, d: int) -> dict[str, float]:
        synset = self.synsets[d]
        characters = "".join(synset.lemmas)
        idf = [self.idf("whole", word) for word in self.words["gloss"][d]] or [math.nan]
        polysemy = [sum(lemma in others for others in self.texts.lemmas) for lemma in self.texts.lemmas[d]]
        return {
            "lemma_count": len(synset.lemmas), "lemma_chars": len(characters) / len(synset.lemmas),
            "gloss_chars": len(synset.gloss), "example_count": len(synset.examples),
            "gloss_idf_mean": sum(idf) / len(idf), "gloss_idf_max": max(idf), "gloss_idf_min": min(idf),
            "polysemy_max": max(polysemy), "polysemy_mean": sum(polysemy) / len(polysemy),
            "mention_count": self.texts.n_mentions[d],
            "capital_share": sum(map(str.isupper, characters)) / len(characters),
            "gloss_punctuation": sum(synset.gloss.count(character) for character in ",;()-"),
            "is_noun": synset.part == "n", "is_verb": synset.part == "v",
            "is_adjective": synset.part == "a", "is_adverb": synset.part == "r",
        }  # fmt: skip


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def trigrams(text: str) -> set[str]:
    return {f" {text} "[i : i + 3] for i in range(len(text))}


# -- grades

CLOSE = {"@", "@i", "~", "~i", "#m", "#s", "#p", "%m", "%s", "%p", "=", "!", "&", "*", ">", "$", "+", "\\", "<"}
RELATED = {"^", ";c", "-c", ";u", "-u", ";r", "-r"}


def grade(synsets: Sequence[Synset], rules: Rules, q: int, d: int) -> int:
    """The grade of one document, by the table of grades; pointers upwards must have no circles."""
    small, medium, large = rules.classes

    def linked(a: int, b: int, symbols: set[str]) -> bool:
        return any(t == y and s in symbols for x, y in ((a, b), (b, a)) for s, t in synsets[x].pointers)

    def above(a: int) -> set[int]:
        one = synsets[a]
        symbols = {"@", "@i"} | {"n": set(), "v": set(), "a": {"=", "\\"}, "r": {"\\"}}[one.part]
        return {t for s, t in one.pointers if s in symbols | ({"&"} if one.is_satellite else set())}

    def classes(a: int) -> set[int]:
        return {a}.union(*(classes(b) for b in above(a)))

    def share(c: int) -> float:
        return sum(c in classes(a) for a in range(len(synsets))) / sum(s.part == synsets[c].part for s in synsets)

    def smallest(one: set[int], other: set[int]) -> float:
        return min(map(share, one & other), default=2.0)

    def family(a: int) -> set[int]:
        kin = [b for b in range(len(synsets)) if synsets[a].part != synsets[b].part and linked(a, b, {"+", "\\", "="})]
        return set().union(*map(classes, kin))

    def topics(a: int) -> set[int]:
        return {t for b in {a} | above(a) for s, t in synsets[b].pointers if s == ";c"}

    def close(a: int) -> set[int]:
        return {b for b in range(len(synsets)) if linked(a, b, CLOSE)}

    def in_two() -> bool:
        return any(d in (close(b) if len(close(b)) <= rules.hub else above(b)) for b in close(q))

    if linked(q, d, CLOSE):
        return 4
    common = smallest(classes(q), classes(d))
    if linked(q, d, RELATED) or (in_two() and common <= small):
        return 3
    by_family = min(smallest(family(q), classes(d)), smallest(classes(q), family(d)))
    if common <= medium or in_two() or by_family <= small:
        return 2
    same_file = synsets[q].part in "nv" and synsets[d].part in "nv" and synsets[q].file == synsets[d].file
    same_topic = bool(topics(q) & topics(d)) or d in topics(q)
    return int(common <= large or by_family <= large or same_file or same_topic)
