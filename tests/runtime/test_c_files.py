"""Model files that are damaged: librankwood refuses what Python refuses, with the same sentence."""

from __future__ import annotations

import io
import json
import random

import numpy as np
import pytest
from calling import MODEL, OK, ROOT

from rankwood import Ensemble, ModelError
from rankwood.model.file import parse_model
from strategies.model_files import CONTENTS, description_of, header_of, mutated, with_description, with_header


def agree(library, content: bytes) -> bool:
    """Whether both take it, once they are known to agree."""
    status, loaded, message = library.load(content)
    expected, model = None, None
    try:
        model = parse_model(io.BytesIO(content), Ensemble)
    except ModelError as error:
        expected = str(error)
    if model is None:
        assert (status, message) == (MODEL, expected)
        return False
    assert status == OK, message
    assert loaded.fact("fingerprint").decode() == model.fingerprint()
    if model.n_features < 1000:
        X = np.resize(np.array([0.0, 1.0, np.nan, -np.inf, 0.5, 1e300]), (9, model.n_features))
        status, scores, _ = loaded.score(X)
        assert status == OK
        assert scores.tobytes() == model.score(X).tobytes()
    return True


@pytest.mark.parametrize("content", CONTENTS, ids=["noted", "exits", "empty", "sets", "sets and exit"])
def test_a_file_cut_off_anywhere(library, content):
    for length in range(len(content)):
        assert not agree(library, content[:length])
    assert agree(library, content)
    assert not agree(library, content + b"\0")


@pytest.mark.parametrize("seed", range(3))
def test_changed_files(library, seed):
    rng = random.Random(1000 + seed)
    taken = 0
    for _ in range(1500):
        content = rng.choice(CONTENTS)
        kind = rng.randrange(3)
        if kind == 0:
            changed = with_description(content, mutated(description_of(content), rng))
        elif kind == 1:
            header, data = header_of(content)
            changed = with_header(mutated(header, rng).encode(errors="surrogatepass"), data)
        else:
            edited = bytearray(content)
            for _ in range(rng.choice([1, 1, 2])):
                edited[rng.randrange(len(edited))] = rng.randrange(256)
            changed = bytes(edited)
        taken += agree(library, changed)
    assert 20 < taken < 1400


@pytest.mark.parametrize(
    ("array", "entries", "message"),
    [
        ("left", [0, 0, 0], "tree 0, node 0: node 0 is its child but already has another place in the tree"),
        ("feature", [0, 3, 0], "tree 0, node 1: there is no feature 3, the model has 3 features, counted from 0"),
        ("threshold", [0, np.nan, 0], "tree 0, node 1: the threshold is NaN"),
        ("leaf_value", [1, 2, 3, np.inf, 5], "tree 1, leaf 0: the value is not a finite number"),
        ("leaf_value", [1.7e308, 2, 3, 1e308, 5], "leaf values and weights are so large that a score could overflow"),
        ("tree_weights", [1, np.nan], "the weight of tree 1 is not a finite number"),
        (
            "missing_left",
            [0, 1, 2],
            "the file is damaged: array missing_left holds a byte that is neither true nor false",
        ),
        ("node_offsets", [0, 2, 2], "node_offsets end with 2 but there are 3 nodes"),
        ("node_count", [10, -6, 10], "node_count of node 1 is -6"),
        ("split_gain", [1, 2, np.inf], "split_gain of node 2 is inf"),
        ("split_gain", [3, 1, 5.5], "the file is damaged: its numbers are not those that were written"),
    ],
)
def test_wrong_arrays(library, array, entries, message):
    header, data = header_of(CONTENTS[0])
    place = json.loads(header)[array]
    dtype = {"I32": np.int32, "I64": np.int64, "F64": np.float64, "BOOL": np.uint8}[place["dtype"]]
    begin, end = place["data_offsets"]
    changed = with_header(header, data[:begin] + np.array(entries, dtype).tobytes() + data[end:])
    assert not agree(library, changed)
    assert library.load(changed)[2] == message


def test_the_seeds_of_the_fuzzer_are_models(library):
    seeds = sorted((ROOT / "native" / "fuzz" / "load_memory.seeds").iterdir())
    assert len(seeds) >= 5
    assert all(agree(library, seed.read_bytes()) for seed in seeds)
