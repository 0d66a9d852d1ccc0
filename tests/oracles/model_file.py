"""A slow, obvious reader of model files: what the header and arrays of one are, and nothing else.

The reader of rankwood is C++ (native/model); trees and sums are left to `Ensemble` here, which has oracles of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwood import EarlyExit, Ensemble

ARRAYS = {
    "feature": "I32", "threshold": "F64", "left": "I32", "right": "I32", "missing_left": "BOOL", "leaf_value": "F64",
    "node_offsets": "I64", "tree_weights": "F64", "split_gain": "F64", "node_count": "I64", "leaf_cover": "F64",
    "set_offsets": "I64", "set_thresholds": "F64",
}  # fmt: skip
SETS = {"set_offsets", "set_thresholds"}
OPTIONAL = {"split_gain", "node_count", "leaf_cover"} | SETS
TYPES = {"I32": np.int32, "F64": np.float64, "I64": np.int64, "BOOL": np.uint8}
FACTS = {"format_version", "n_features", "base", "feature_names", "metadata"}


class Refused(ValueError):
    """What is read is no model."""


class Object(dict):
    """A JSON object that remembers which names stand in it twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = {name for name in names if names.count(name) > 1} if len(names) > len(self) else set()


def read(content: bytes) -> Ensemble:
    """The model in a file with this content."""
    length = int.from_bytes(content[:8], "little")
    need(len(content) > 8 and content[8:9] == b"{" and length <= 100_000_000 and 8 + length <= len(content))
    need(length > 0)
    header, data = load(content[8 : 8 + length].decode(), unsigned), content[8 + length :]
    need(isinstance(header, dict) and not header.twice & {"__metadata__", *ARRAYS} and encodable(header))
    entries = header.pop("__metadata__", None)
    need(isinstance(entries, dict) and "rankwood" in entries and "rankwood" not in entries.twice)
    need(all(isinstance(text, str) for text in entries.values()))
    facts = read_facts(load(entries["rankwood"]))
    need(SETS & set(header) == (SETS if facts.pop("format_version") == 3 else set()))
    checksum = facts.pop("checksum")
    arrays = read_arrays(header, data)
    model = Ensemble(**arrays, **facts)
    need(checksum is None or checksum == json.loads(description_of(model))["checksum"])
    return model


def description_of(model: Ensemble) -> str:
    from rankwood.model.file import model_bytes

    content = model_bytes(model)
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["rankwood"]


def need(fine: Any) -> None:
    if not fine:
        raise Refused


def unsigned(digits: str) -> int | None:
    return None if digits.startswith("-") else int(digits)


def load(text: str, parse_int: Callable[[str], int | None] = int) -> Any:
    def refuse(_: str) -> None:
        raise Refused

    def finite(digits: str) -> float:
        need(math.isfinite(float(digits)))
        return float(digits)

    return json.loads(text, parse_constant=refuse, parse_float=finite, parse_int=parse_int, object_pairs_hook=Object)


def encodable(value: Any) -> bool:
    """Whether all strings are text, and none holds half of a character."""
    if isinstance(value, dict):
        return encodable(list(value)) and encodable(list(value.values()))
    if isinstance(value, list):
        return all(map(encodable, value))
    return not isinstance(value, str) or not any("\ud800" <= c <= "\udfff" for c in value)


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def read_facts(facts: Any) -> dict[str, Any]:
    need(isinstance(facts, dict) and not facts.twice)
    version = facts.pop("format_version", None)
    need(is_int(version) and 1 <= version <= 3)
    checksum = facts.pop("checksum", None)
    exits = version == 2 or (version == 3 and "exit" in facts)
    need(set(facts) == FACTS - {"format_version"} | ({"exit"} if exits else set()))
    names = facts["feature_names"]
    need(is_int(facts["n_features"]) and (is_int(facts["base"]) or isinstance(facts["base"], float)))
    need((names is None or isinstance(names, list)) and isinstance(facts["metadata"], dict))
    exit = read_exit(facts.pop("exit")) if exits else None
    return {**facts, "exit": exit, "checksum": checksum, "format_version": version}


def read_exit(rule: Any) -> EarlyExit:
    need(isinstance(rule, dict) and not rule.twice and set(rule) == {"checkpoints", "margins", "top"})
    need(isinstance(rule["margins"], list) and isinstance(rule["checkpoints"], list))
    need(not any(is_int(margin) and abs(margin) > 1e308 for margin in rule["margins"]))
    return EarlyExit(rule["checkpoints"], [math.inf if one is None else one for one in rule["margins"]], rule["top"])


def read_arrays(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    need(set(ARRAYS) - OPTIONAL <= set(header) <= set(ARRAYS))
    arrays, at = {}, 0
    for entry in header.values():
        need(isinstance(entry, dict) and not entry.twice and set(entry) == {"dtype", "shape", "data_offsets"})
        need(all(isinstance(entry[name], list) for name in ("shape", "data_offsets")))
        need(all(is_int(number) for number in entry["shape"] + entry["data_offsets"]))
        need(len(entry["shape"]) == 1 and len(entry["data_offsets"]) == 2)
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, (begin, end) = TYPES[ARRAYS[name]], entry["data_offsets"]
        need(entry["dtype"] == ARRAYS[name] and begin == at and end >= begin)
        need(end - begin == entry["shape"][0] * np.dtype(dtype).itemsize and end <= len(data))
        arrays[name] = np.frombuffer(data[begin:end], dtype)
        at = end
    need(at == len(data))
    need(arrays["missing_left"].max(initial=0) <= 1)
    need(len(arrays.get("set_thresholds", [0.0])) > 0)
    return arrays | {"missing_left": arrays["missing_left"].astype(bool)}
