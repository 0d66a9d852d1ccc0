"""Slow, obvious twins of native/significance.hpp and native/random.hpp, in whole numbers of any size."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

_WORD = 2**64


def splitmix64(key: int, i: int) -> int:
    z = (key + (i + 1) * 0x9E3779B97F4A7C15) % _WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
    return z ^ (z >> 31)


def stream_key(seed: int, n: int) -> int:
    return splitmix64(splitmix64(seed, 0), n)


def random_sign(seed: int, permutation: int, query: int) -> int:
    word = splitmix64(stream_key(seed, query // 8), permutation // 8)
    byte = (word >> (8 * (permutation % 8))) % 256
    return 1 if (byte >> (query % 8)) % 2 else -1


def count_random_sign_flips(magnitudes, bound, two_sided, n_permutations, seed) -> int:
    count = 0
    for p in range(n_permutations):
        total = sum(random_sign(seed, p, q) * magnitude for q, magnitude in enumerate(magnitudes))
        count += total >= bound or (two_sided and -total >= bound)
    return count


def exact_randomisation_p(differences, alternative) -> Fraction:
    """Enumerate the signs of exact differences (whole numbers or fractions)."""
    observed = sum(differences)
    count = n = 0
    for signs in product((-1, 1), repeat=len(differences)):
        total = sum(sign * abs(d) for sign, d in zip(signs, differences, strict=True))
        n += 1
        if alternative == "two-sided":
            count += abs(total) >= abs(observed)
        else:
            count += total >= observed if alternative == "greater" else total <= observed
    return Fraction(count, n)


def exact_wilcoxon_p(differences, alternative) -> Fraction:
    nonzero = [d for d in differences if d]
    sizes = sorted(abs(d) for d in nonzero)

    def rank(size):  # mean rank of ties
        below, equal = sum(s < size for s in sizes), sizes.count(size)
        return Fraction(2 * below + equal + 1, 2)

    ranks = [rank(abs(d)) for d in nonzero]
    observed = sum((r for r, d in zip(ranks, nonzero, strict=True) if d > 0), Fraction(0))
    sums = [
        sum((r for r, kept in zip(ranks, keep, strict=True) if kept), Fraction(0))
        for keep in product((0, 1), repeat=len(ranks))
    ]
    less = Fraction(sum(s <= observed for s in sums), len(sums))
    greater = Fraction(sum(s >= observed for s in sums), len(sums))
    return {"less": less, "greater": greater, "two-sided": min(Fraction(1), 2 * min(less, greater))}[alternative]


def bootstrap_sums(values, seed, n_resamples) -> list[int]:
    n = len(values)
    sums = []
    for resample in range(n_resamples):
        key = stream_key(seed, resample)
        words = [splitmix64(key, i) for i in range((n + 1) // 2)]
        halves = [half for word in words for half in (word % 2**32, word >> 32)]
        sums.append(sum(values[(half * n) >> 32] for half in halves[:n]))
    return sums
