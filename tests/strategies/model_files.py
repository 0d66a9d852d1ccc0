"""Model files, taken apart and changed: tokens of their JSON, and small models that have everything a file can hold."""

from __future__ import annotations

import json
import random
import re
import struct

import numpy as np

import rankwood as rw
from rankwood import Ensemble
from rankwood.model.file import model_bytes
from strategies.ensembles import big_ensemble

NAMES = ["size", "näme \U0001f600", "half \ud83d"]
NOTED = Ensemble(
    feature=[0, 1, 0], threshold=[0.5, -np.inf, 1e-310], left=[-1, -2, -1], right=[1, -3, -2],
    missing_left=[False, True, False], leaf_value=[1.0, -0.0, 3.0, 0.1, 20.0], node_offsets=[0, 2, 3],
    tree_weights=[1.0, 0.3], n_features=3, base=0.1, feature_names=NAMES, split_gain=[3.0, 1.0, 5.0],
    node_count=[10, 6, 10], metadata={"note": "ü\ud800", "list": [1, 2.5, None, True, {"a": []}]},
)  # fmt: skip
EXITS = big_ensemble(0, n_trees=40, n_leaves=2, n_features=2).replace(
    exit=rw.EarlyExit((16, 32), (0.5, np.inf), top=5), leaf_cover=np.ones(80)
)
SETS = Ensemble.from_trees(
    [(0, [-1.0, 0.5, 3.0], (1, 2.0, 1.0, 2.0), (0, [-np.inf, 1e300], 3.0, 4.0, True))] * 20, n_features=2
)
SETS_AND_EXIT = SETS.replace(exit=rw.EarlyExit((16,), (0.5,), top=5))
MODELS = [NOTED, EXITS, Ensemble.from_trees([], n_features=0), SETS, SETS_AND_EXIT]
CONTENTS = [model_bytes(model) for model in MODELS]


def header_of(content: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return content[8 : 8 + length].decode(), content[8 + length :]


def with_header(text: str | bytes, data: bytes) -> bytes:
    text = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(text)) + text + data


def with_description(content: bytes, text: str) -> bytes:
    """The file with another description: JSON in JSON."""
    header, data = header_of(content)
    entries = json.loads(header)
    entries["__metadata__"]["rankwood"] = text
    return with_header(json.dumps(entries), data)


def description_of(content: bytes) -> str:
    return json.loads(header_of(content)[0])["__metadata__"]["rankwood"]


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}\[\],:]|\s+')
NASTY = [
    "0", "-0", "-1", "1", "2", "16", "2.0", "1e2", "1E400", "-1e999", "1e-999", "01", "1.", ".5", "+1", "-", "0x10",
    "18446744073709551616", "9223372036854775808", "10" * 200, "NaN", "Infinity", "-Infinity", "null", "true", "false",
    "nul", "{}", "[]", "[[]]", '""', '"a"', '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\ude00\\ud83d"', '"\\x"',
    '"\\u12"', '"\t"', '"\x7f"', "'a'", ",", ":", "{", "}", "[", "]", " ", "\ufeff", "\x00", "//", "I32", '"F64"',
    '"I32"', '"feature"', '"exit"', '"checksum"', '"rankwood"', '"__metadata__"', "1" * 4301, '"é\U0001f600"', "\x0b",
    "\xa0",
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """JSON text in which one to three tokens are replaced, dropped, doubled or swapped."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(tokens))
        kind = rng.randrange(6)
        if kind == 0:
            tokens[at] = rng.choice(NASTY)
        elif kind == 1:
            del tokens[at : at + rng.choice([1, 1, 2, 4])]
        elif kind == 2:
            tokens[at:at] = [rng.choice(NASTY)]
        elif kind == 3:  # an entry twice, as it is or with another value
            tokens[at:at] = tokens[at : at + rng.choice([2, 4, 8, 12])]
        elif kind == 4:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = (
                tokens[at].swapcase() if rng.random() < 0.2 else tokens[at] + rng.choice([" ", "\n", "0", "e1"])
            )
        if not tokens:
            return ""
    return "".join(tokens)
