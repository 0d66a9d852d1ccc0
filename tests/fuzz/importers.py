"""Any bytes as a model file of another tool: a model that scores finite numbers or one sentence, and nothing else.

python tests/fuzz/importers.py KIND CORPUS... [options of libFuzzer]
python tests/fuzz/importers.py KIND --seeds FOLDER     writes what to begin with

`tools/fuzz` runs all kinds. Half of the time an input is changed as what it is (a JSON value, an ONNX graph, a text
with numbers), else as bytes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import atheris
except ImportError:
    sys.exit("importers are fuzzed with atheris: pip install atheris")

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "formats")]
with atheris.instrument_imports(include=["rankwood"]):
    import rankwood  # noqa: F401
    from rankwood.formats import (  # noqa: F401
        catboost,
        lightgbm,
        onnx,
        ranklib_quickrank,
        reading,
        registry,
        search_engines,
        ubjson,
        vespa_expression,
        xgboost,
    )

import pytest  # noqa: E402
import test_fuzz  # noqa: E402 - as it is not to be instrumented

Mutator = Callable[[bytes, random.Random], bytes]


def change_json(content: bytes, rng: random.Random) -> bytes:
    """A JSON value with one place changed."""
    return json.dumps(_with_another_place(json.loads(content), rng)).encode()


def change_ubjson(content: bytes, rng: random.Random) -> bytes:
    """A UBJSON value with one place changed."""
    return test_fuzz.ubjson(_with_another_place(ubjson.parse_ubjson(content), rng))


def _with_another_place(value: Any, rng: random.Random) -> Any:
    """The value with another one at one of its places, without that place, or with a copy of another place there."""
    paths = [path for path in test_fuzz.walk(value) if path]
    if not paths:
        return rng.choice(test_fuzz.ODD_VALUES)
    *above, last = rng.choice(paths)
    inner = value
    for key in above:
        inner = inner[key]
    action = rng.randrange(4)
    if action == 0:
        del inner[last]
    elif action == 1:
        copied = value
        for key in rng.choice(paths):
            copied = copied[key]
        inner[last] = json.loads(json.dumps(copied))
    else:
        inner[last] = rng.choice(test_fuzz.ODD_VALUES)
    return value


def change_numbers(content: bytes, rng: random.Random) -> bytes:
    """A text with one of its numbers replaced."""
    numbers = list(test_fuzz.NUMBER.finditer(content))
    if not numbers:
        return content
    one = rng.choice(numbers)
    token = rng.choice([*test_fuzz.IN_PLACE_OF_NUMBERS, rng.choice(numbers)[0]])
    return content[: one.start()] + token + content[one.end() :]


def change_graph(content: bytes, rng: random.Random) -> bytes:
    """An ONNX model whose graph has other attributes, or nodes that come twice, feed themselves or are gone."""
    from onnx import helper, load_model_from_string

    model = load_model_from_string(content)
    nodes = model.graph.node
    if not nodes:
        return content
    node = rng.choice(nodes)
    action = rng.choice(["attribute", "attribute", "number", "number", "copy", "loop", "drop", "chain", "rename"])
    if action == "attribute" and node.attribute:
        attribute = rng.choice(node.attribute)
        attribute.CopyFrom(helper.make_attribute(attribute.name, rng.choice(test_fuzz.odd_attributes())))
    elif action == "number" and node.attribute:
        attribute = rng.choice(node.attribute)
        numbers = max(attribute.ints, attribute.floats, key=len)
        if numbers:
            odd = [-1, 0, 1, len(numbers), 2**31, 2**62] if numbers is attribute.ints else [0.5, -1e38, float("nan")]
            numbers[rng.randrange(len(numbers))] = rng.choice(odd)
            if rng.randrange(4) == 0:
                del numbers[-1]
    elif action == "copy":
        nodes.add().CopyFrom(node)
    elif action == "loop" and node.output and node.input:
        node.input[rng.randrange(len(node.input))] = node.output[0]
    elif action == "drop":
        nodes.remove(node)
    elif action == "chain" and node.output:
        kinds = ["Add", "Sum", "Cast", "Identity", "Mul", "Reshape", "Concat"]
        wires = [name for one in nodes for name in (*one.input, *one.output)]
        nodes.append(helper.make_node(rng.choice(kinds), rng.sample(wires, min(2, len(wires))), [node.output[0]]))
    elif node.output:
        node.output[0] = rng.choice([*node.input, "Y", "", "other"])
    return model.SerializeToString()


KINDS: dict[str, tuple[list[str], Mutator]] = {
    "lightgbm": (["lightgbm-4.7.0.txt", "lightgbm-4.7.0-zero.txt", "lightgbm-2.3.1.txt", "lightgbm-categories"],
                 change_numbers),
    "json": (["lightgbm-4.7.0.json", "xgboost-3.2.0.json", "xgboost-dump", "xgboost-categories"], change_json),
    "catboost": (["catboost-1.2.10.json", "catboost-1.2.10-lossguide.json", "catboost-one-hot"], change_json),
    "ubjson": (["xgboost-3.2.0-dart.ubj", "xgboost-1.7.6.ubj"], change_ubjson),
    "xml": (["ranklib", "quickrank", "jforests"], change_numbers),
    "onnx": (["onnx", "onnx-5"], change_graph),
    "engines": (["solr", "elasticsearch", "elasticsearch-ltr", "elasticsearch-ranklib", "vespa"], change_json),
    "vespa-expression": (["vespa-expression"], change_numbers),
}  # fmt: skip


def read(content: bytes) -> None:
    """Read an input, and let anything that was not foreseen out as an error."""
    try:
        test_fuzz.reads_or_refuses(content)
    except pytest.fail.Exception as failure:  # no Exception, so that fuzzers take it for the end of the process
        raise AssertionError(str(failure)) from failure


def main() -> None:
    kind = sys.argv.pop(1)
    names, change = KINDS[kind]
    if sys.argv[1] == "--seeds":
        for name in names:
            (Path(sys.argv[2]) / name).write_bytes(test_fuzz.subject(name))
        return

    def mutate(content: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.randrange(2):
            try:
                changed = change(content, rng)
            except Exception:  # it is no such thing any more
                changed = b""
            if changed and len(changed) <= max_size:
                return changed
        return bytes(atheris.Mutate(content, max_size))

    atheris.Setup(sys.argv, read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
