"""Ctrl-C in the middle of a native call is heard there, whatever the call does and on however many threads.

Each call is made in a process of its own. One that would go on for many minutes is interrupted, and must end long
before the test gives up. One that has no such size, because its data would be too large, gets one signal after another:
while handlers can only run between two instructions of Python, one or two run per call; here more of them must.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from rankwood.scoring.c_library import find_compiler

pytestmark = [pytest.mark.native, pytest.mark.skipif(os.name != "posix", reason="sends signals")]

PATIENCE = 150  # seconds; a call of LONG takes many times that
ENOUGH = 5  # signals heard during one call: one or two could come before and after it

START = '''
import os, signal, threading
import numpy as np
import rankwood as rw
from rankwood import _native
from rankwood.evaluation.conventions import CONVENTIONS
from rankwood.evaluation.measures import parse_measure
from rankwood.evaluation.per_query import resolve

rng = np.random.default_rng(0)

def tree_arrays(model):
    return *model.trees.native(), model.n_features

def weighted_arrays(model):
    return *tree_arrays(model), model.tree_weights, model.base

def press():
    os.kill(os.getpid(), signal.SIGINT)

def model(n_trees, n_leaves=64):
    """Trees of whole levels, all with the same nodes, on 20 features."""
    n = n_leaves - 1
    number = np.arange(n)
    child = lambda at: np.tile(np.where(at < n, at, ~(at - n)).astype(np.int32), n_trees)
    return rw.Ensemble(
        feature=np.tile(rng.integers(0, 20, n, dtype=np.int32), n_trees),
        threshold=np.tile(rng.random(n), n_trees),
        left=child(2 * number + 1),
        right=child(2 * number + 2),
        missing_left=np.zeros(n * n_trees, dtype=bool),
        leaf_value=np.tile(rng.random(n_leaves), n_trees),
        node_offsets=np.arange(n_trees + 1) * n,
        tree_weights=np.ones(n_trees),
        n_features=20,
    )

def rows(n):
    return np.broadcast_to(rng.random(20, dtype=np.float32), (n, 20))

def spec(measure):
    return resolve(parse_measure(measure), CONVENTIONS["rankwood"])

def queries(n_docs, docs_per_query):
    """Labels, scores and offsets."""
    labels = rng.integers(0, 5, n_docs).astype(np.float64)
    return labels, rng.random(n_docs), np.arange(0, n_docs + 1, docs_per_query)

def follow_lines(n_docs, docs_per_query, n_lines, measure):
    """The measure along lines of one tree."""
    labels, scores, offsets = queries(n_docs, docs_per_query)
    line = _native.LineMeasure(spec(measure), labels, offsets, None, _native.Ties.ORDER, None, False)
    line.set_scores(scores, None, 1)
    codes = rng.integers(0, 16, (1, n_docs), dtype=np.uint8)
    tree = (codes, rng.random(16), np.array([0, 16]))
    deltas = np.tile(np.linspace(-1.0, 1.0, 20), (n_lines, 1))
    trees, sums = np.zeros(n_lines, np.int64), np.empty((n_lines, 20), np.int64)
    return lambda: line.sums(*tree, trees, deltas, None, n_threads, sums)
'''

INTERRUPT = """
n_threads = {n_threads}
{setup}
threading.Timer(0.5, press).start()
try:
    call()
except KeyboardInterrupt:
    print("interrupted")
else:
    print("finished")
"""

LONG = {
    "gradients of a query": """
        labels, scores, offsets = queries(1_000_000, 1_000_000)
        loss = _native.LambdaGradients(labels, offsets, None, None, 1_000_000, 1.0, False, False, n_threads)
        call = lambda: loss.compute(scores, np.empty_like(scores), np.empty_like(scores))
        """,
    "normalised gradients of queries": """
        labels, scores, offsets = queries(1_200_000, 400_000)
        loss = _native.LambdaGradients(labels, offsets, None, None, 400_000, 1.0, True, False, n_threads)
        call = lambda: loss.compute(scores, np.empty_like(scores), np.empty_like(scores))
        """,
    "sums of leaves in training": """
        n_docs = 1_000_000
        bins = np.zeros((1, n_docs, 16), np.uint8), np.ones(1, np.int32), np.zeros(1, np.uint8)
        grower = _native.TreeGrower(*bins, n_threads)
        ones, everything = np.ones(n_docs), np.arange(n_docs, dtype=np.uint32)
        grower.start(ones, ones, everything, np.ones(1, np.uint8), 0.0, 0.0, 0.0, 1, True, False)
        root = [0] * 30_000
        call = lambda: grower.sums(root, ones, ones, (1.0, 1.0), np.empty((len(root), 4), np.int64))
        """,
    "scores that trees are added to": """
        leaves, scores = rng.integers(0, 256, 32_000_000, dtype=np.uint8), np.zeros(32_000_000)
        many = 8_000
        trees = [leaves] * many, [np.ones(256)] * many, [1.0] * many
        call = lambda: _native.add_trees(*trees, scores, np.zeros_like(scores), n_threads)
        """,
    "sums of gradients over kept leaves": """
        leaves, ones = rng.integers(0, 256, 1_000_000, dtype=np.uint8), np.ones(1_000_000, np.int64)
        sums = np.empty((256, 2), np.int64)
        trees = [leaves] * 500_000, ones, ones, n_threads, [sums] * 500_000  # the same again and again
        call = lambda: _native.sum_over_leaves(*trees)
        """,
    "engine reference": """
        trees, X = model(5_000), rows(10_000_000)
        trees.score(X[:1], engine="reference")
        call = lambda: trees.score(X, engine="reference", n_threads=n_threads)
        """,
    "engine traverse": """
        trees, X = model(20_000), rows(10_000_000)
        trees.score(X[:1], engine="traverse")
        call = lambda: trees.score(X, engine="traverse", n_threads=n_threads)
        """,
    "engine bitslice": """
        trees, X = model(20_000), rows(10_000_000)
        trees.score(X[:1], engine="bitslice")
        call = lambda: trees.score(X, engine="bitslice", precision="double", n_threads=n_threads)
        """,
    "a measure of tied documents": """
        labels, _, offsets = queries(1_500_000, 1_500_000)
        data = labels, np.zeros_like(labels), offsets, None, None, _native.Ties.AVERAGE
        call = lambda: _native.per_query([spec("ERR")], *data, n_threads, np.empty((1, 1)))
        """,
    "many measures of a query": """
        specs = 200_000 * [spec("AP")]
        data = *queries(2_000_000, 2_000_000), None, None, _native.Ties.ORDER
        call = lambda: _native.per_query(specs, *data, n_threads, np.empty((len(specs), 1)))
        """,
    "a randomisation test": """
        magnitudes = rng.integers(0, 1000, 40_000)
        call = lambda: _native.count_sign_flips(magnitudes, 1000, True, 1_000_000_000, False, 1, n_threads)
        """,
    "a randomisation test of many queries": """
        magnitudes = rng.integers(0, 1000, 40_000_000)
        call = lambda: _native.count_sign_flips(magnitudes, 1000, True, 10_000_000, False, 1, n_threads)
        """,
    "a bootstrap": """
        values = rng.integers(0, 1000, 1_000_000)
        call = lambda: _native.bootstrap_sums(values, 1, n_threads, np.empty(1_000_000, np.int64))
        """,
    "a line search": "call = follow_lines(200_000, 100, 200_000, 'nDCG@10')",
    "few lines of many queries": "call = follow_lines(100_000, 50_000, 1, 'nDCG@10')",
    "a line search in a query": "call = follow_lines(300_000, 300_000, 3, 'nDCG@10')",
    "a line search for another measure": "call = follow_lines(200_000, 100, 200_000, 'AP')",
    "least squares over all leaves": """
        n_docs = 2_000_000
        codes, values = rng.integers(0, 64, (40, n_docs), dtype=np.uint8), np.zeros(40 * 64)
        counts = np.concatenate([np.bincount(of_tree, minlength=64) for of_tree in codes]).astype(np.float64)
        tree, offsets = (codes, values, np.arange(41) * 64), np.arange(0, n_docs + 1, 100)
        how = rng.random(n_docs) - 0.5, 1e-9, 1_000_000, 0.0, n_threads, np.empty(n_docs)
        call = lambda: _native.joint_ridge(*tree, np.arange(40), offsets, counts, *how)
        """,
    "sums of residuals for refitting leaves": """
        tree = np.zeros((1, 1_000_000), np.uint8), np.ones(1), np.array([0, 1])
        residuals = np.ones(1_000_000, np.int64)
        trees = np.zeros(10_000_000, np.int64)  # the same again and again
        call = lambda: _native.leaf_sums(*tree, trees, residuals, n_threads, np.empty(1, np.int64))
        """,
}

REPEAT = """
n_threads = {n_threads}
heard, again = 0, threading.Event()

def hear(number, frame):
    global heard
    heard += frame.f_code is call.__code__
    again.set()

def keep_pressing():
    while True:
        again.wait()
        again.clear()
        press()

{setup}
for n in [smallest * 2**i for i in range(4)]:
    call, heard = prepare(n), 0
    if n == smallest:
        signal.signal(signal.SIGINT, hear)
        threading.Thread(target=keep_pressing, daemon=True).start()
    again.set()
    call()
    if heard >= {enough}:
        break
print("heard", "enough" if heard >= {enough} else heard)
"""

LEAVES = """
    smallest, kernel = 50_000, _native.ENGINE(*weighted_arrays(model(2_000)))
    def prepare(n):
        X, leaves = rows(n), np.empty((n, 2_000), np.uint8)
        return lambda: kernel.leaves(X, leaves, n_threads)
    """

READ = """
    smallest = 2_000_000
    def prepare(n):
        text = np.frombuffer(b"1 qid:1 1:0.25 2:1e-3 3:7 4:0.125 5:3\\n" * n, np.uint8)
        pad = np.full(_native.TEXT_PADDING, ord("\\n"), np.uint8)
        buffer = np.concatenate([pad, text, pad])
        reader = _native.SvmlightReader(
            5, ignore_beyond=False, absent=0.0, zero_based=False, document_ids=False, max_bytes=1 << 40, max_text="",
            max_rows=None, chunk_bytes=1 << 18, careful_only=CAREFUL
        )
        return lambda: reader.parse(buffer, len(text), True, 0, n_threads)
    """

REPEATED = {
    "edges of bins": """
        smallest = 2_000_000
        def prepare(n):
            X = np.zeros((n, 64), np.float32)
            return lambda: _native.find_bin_edges(X, 255, n_threads)
        """,
    "edges of many bins": """
        smallest = 400_000
        def prepare(n):
            X = rng.random((n, 40), dtype=np.float32)
            return lambda: _native.find_bin_edges(X, 65_535, n_threads)
        """,
    "bins": """
        smallest = 500_000
        def prepare(n):
            X, bins = np.zeros((n, 64), np.float32), np.empty((4, n, 16), np.uint8)
            edges = np.tile(np.linspace(0, 1, 254), 64), np.arange(65) * 254
            return lambda: _native.encode_bins(X, *edges, bins, np.zeros(64, np.uint8), n_threads)
        """,
    "exact codes": """
        smallest = 100
        def prepare(n):
            X, codes = rng.random((60_000, n), dtype=np.float32), np.empty((-(-n // 16), 60_000, 16), np.uint16)
            return lambda: _native.encode_exactly(X, codes, np.zeros(n, np.uint8), n_threads)
        """,
    "ranges of codes": """
        smallest = 4_000_000
        def prepare(n):
            X, codes = np.zeros((n, 32), np.float32), np.zeros((2, n, 16), np.uint8)
            out = np.empty(32, np.float32), np.empty(32, np.float32)
            return lambda: _native.find_code_ranges(X, codes, np.arange(33), *out, n_threads)
        """,
    "the root of a tree": """
        smallest = 1_000_000
        def prepare(n):
            counts = np.full(512, 255, np.int32), np.zeros(512, np.uint8)
            grower = _native.TreeGrower(np.zeros((32, n, 16), np.uint8), *counts, n_threads)
            given = np.ones(n), np.ones(n), np.arange(n, dtype=np.uint32), np.ones(512, np.uint8)
            return lambda: grower.start(*given, 0.0, 0.0, 0.0, 1, True, True)
        """,
    "a split": """
        smallest = 1_000_000
        def prepare(n):
            counts = np.full(512, 255, np.int32), np.zeros(512, np.uint8)
            bins = np.zeros((32, n, 16), np.uint8)
            bins[0, : n // 2, 0] = 1
            grower = _native.TreeGrower(bins, *counts, n_threads)
            gradient, rows = np.where(bins[0, :, 0], 1.0, -1.0), np.arange(n, dtype=np.uint32)
            grower.start(gradient, np.ones(n), rows, np.ones(512, np.uint8), 0.0, 0.0, 0.0, 1, True, True)
            return lambda: grower.split(0, True)
        """,
    "leaves of binned documents": """
        smallest = 8_000_000
        def prepare(n):
            depth = 60
            bins, nodes = np.zeros((1, n, 16), np.uint8), np.arange(depth, dtype=np.int32)
            left = np.where(nodes + 1 < depth, nodes + 1, ~0).astype(np.int32)
            tree = nodes * 0, nodes * 0, np.zeros(depth, np.uint8), left, (~(nodes + 1)).astype(np.int32)
            leaf = np.empty(n, np.uint16)
            return lambda: _native.reach_leaves(bins, np.array([1], np.int32), *tree, None, leaf, n_threads)
        """,
    **{f"leaves of documents by {engine}": LEAVES.replace("ENGINE", engine) for engine in ("Bitslice", "Traverse")},
    "trees that are checked": """
        smallest = 100_000
        def prepare(n):
            arrays = tree_arrays(model(n))
            return lambda: _native.check_trees(np.empty(n, np.int32), *arrays)
        """,
    "an engine that is prepared": """
        smallest = 20_000
        def prepare(n):
            arrays = weighted_arrays(model(n))
            return lambda: _native.Traverse(*arrays)
        """,
    "measures of many queries": """
        smallest, specs = 2_000_000, [spec("nDCG"), spec("AP"), spec("ERR")]
        def prepare(n):
            data = *queries(n, 20), None, None, _native.Ties.AVERAGE
            return lambda: _native.per_query(specs, *data, n_threads, np.empty((3, n // 20)))
        """,
    "scores along lines": """
        smallest = 4_000_000
        def prepare(n):
            labels, scores, offsets = queries(n, 100)
            line = _native.LineMeasure(spec("nDCG@10"), labels, offsets, None, _native.Ties.ORDER, None, False)
            return lambda: line.set_scores(scores, None, n_threads)
        """,
    "outputs of trees": """
        smallest = 2_000
        def prepare(n):
            codes = np.zeros((n, 300_000), np.uint8)
            tree = codes, np.ones(n), np.arange(n + 1)
            return lambda: _native.add_outputs(*tree, np.ones(n), 0.0, n_threads, np.empty(300_000), None)
        """,
    "outputs that are checked": """
        smallest = 4_000
        def prepare(n):
            codes = np.zeros((n, 500_000), np.uint16)
            return lambda: _native.check_leaf_codes(codes, np.ones(n), np.arange(n + 1), n_threads)
        """,
    "sums of a growing forest": """
        smallest = 100_000
        def prepare(n):
            arrays = tree_arrays(model(400, 256))
            trees = _native.ForestTrees(arrays[6], *arrays[:6])
            X, sums, scores = rng.random((n, 20), dtype=np.float32), np.zeros(n), np.empty((400, n))
            return lambda: _native.running_sums(trees, X, sums, scores, n_threads)
        """,
    "documents out of the bag": """
        smallest = 100_000
        def prepare(n):
            arrays = tree_arrays(model(400, 256))
            trees = _native.ForestTrees(arrays[6], *arrays[:6])
            X, zeros = rng.random((n, 20), dtype=np.float32), np.zeros((2, n, 16), np.uint8)
            ranges = np.arange(21), np.zeros(20, np.float32), np.zeros(20, np.float32)
            data = zeros, np.zeros(20, np.uint8), *ranges, np.array([0, n]), np.zeros(n), None
            grower = _native.ForestGrower(*data, False)
            sampling, out = _native.SampleRules(False, False, 10, 0.0), (np.zeros(n), np.zeros(n, np.uint32))
            return lambda: grower.add_out_of_bag(trees, 1, 0, sampling, X, *out, n_threads)
        """,
    "text that is read": READ.replace("CAREFUL", "False"),
    "text that is read with care": READ.replace("CAREFUL", "True"),
    "text that is written": """
        smallest = 200_000
        def prepare(n):
            X = rng.random((n, 40), dtype=np.float32)
            data = X, np.zeros(n), np.zeros(n, np.int64), b"1", np.array([1]), b"", None
            return lambda: _native.format_svmlight(*data, zero_based=False, absent=None, n_threads=n_threads)
        """,
}

IFELSE = """
    smallest, kernel = 1_000_000, rw.get_engine("ifelse").prepare(model(100, 16))._kernel._trees
    def prepare(n):
        X, scores = rows(n), np.empty(n)
        return lambda: kernel.score(X, scores, False, n_threads)
    """


AGAIN = """
def interrupt(call):
    threading.Timer(0.1, press).start()
    try:
        call()
    except KeyboardInterrupt:
        return
    raise AssertionError("it was not interrupted")

labels, scores, offsets = queries(400_000, 50_000)
def gradients(loss):
    out = np.empty_like(scores), np.empty_like(scores)
    loss.compute(scores, *out)
    return out

make = lambda: _native.LambdaGradients(labels, offsets, None, None, 3_000, 1.0, True, False, {n_threads})
loss = make()
interrupt(lambda: gradients(loss))
assert np.array_equal(gradients(loss), gradients(make()))

n = 2_000_000
bins, counts = np.zeros((32, n, 16), np.uint8), (np.full(512, 255, np.int32), np.zeros(512, np.uint8))
bins[7, : n // 3, 5] = 1
gradient, rows = np.where(bins[7, :, 5], 1.0, -1.0), np.arange(n, dtype=np.uint32)
make = lambda: _native.TreeGrower(bins, *counts, {n_threads})
start = lambda grower: grower.start(gradient, np.ones(n), rows, np.ones(512, np.uint8), 0.0, 0.0, 0.0, 1, True, True)
grower = make()
interrupt(lambda: start(grower))
try:
    grower.node(0)
except ValueError as error:
    assert str(error) == "no such node"
else:
    raise AssertionError("half a tree was left")
fresh = make()
assert start(grower) == start(fresh)
assert grower.node(0) == fresh.node(0)
print("as before")
"""

OTHER_THREAD = """
import time

trees, X, results = model(1_000), rng.random((50_000, 20), dtype=np.float32), []
expected = trees.score(X, engine="reference", n_threads=1)
score = lambda: results.append(trees.score(X, engine="reference", n_threads={n_threads}))
thread = threading.Thread(target=score)
thread.start()
try:
    press()
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    thread.join()
print(np.array_equal(results[0], expected))
"""

TRAINING = """
labels, _, offsets = queries(300_000, 300_000)
data = rw.Dataset(rng.random((300_000, 2), dtype=np.float32), labels, group=[300_000])
for seconds in (1.0, 2.0):  # the first asks for the tree to be the last one, the second does not wait for it
    threading.Timer(seconds, press).start()
try:
    rw.LambdaMART(100, 4, truncation=300_000, on_interrupt="keep", n_jobs={n_threads}).fit(data)
except KeyboardInterrupt:  # there is no tree to keep
    print("interrupted")
"""


def run(template: str, **parts: object) -> str:
    """What the program prints."""
    parts["setup"] = textwrap.dedent(str(parts.get("setup", "")))
    code = START + template.format(**parts)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("call", LONG)
def test_a_long_call_ends_at_once(call, n_threads):
    assert run(INTERRUPT, setup=LONG[call], n_threads=n_threads) == "interrupted\n"


ON_TWO_THREADS = ["bins", "the root of a tree", "leaves of documents by Bitslice", "text that is read"]


@pytest.mark.parametrize(
    ("call", "n_threads"), [*((call, 1) for call in REPEATED), *((call, 2) for call in ON_TWO_THREADS)]
)
def test_signals_are_heard_during_a_call(call, n_threads):
    assert run(REPEAT, setup=REPEATED[call], n_threads=n_threads, enough=ENOUGH) == "heard enough\n"


@pytest.mark.skipif(isinstance(find_compiler(), str), reason="NO C COMPILER: install one to test engine ifelse")
def test_signals_are_heard_while_compiled_models_score():
    assert run(REPEAT, setup=IFELSE, n_threads=1, enough=ENOUGH) == "heard enough\n"


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_was_interrupted_can_begin_again(n_threads):
    assert run(AGAIN, n_threads=n_threads) == "as before\n"


@pytest.mark.parametrize("n_threads", [1, 2])
def test_calls_in_other_threads_are_left_alone(n_threads):
    assert run(OTHER_THREAD, n_threads=n_threads) == "True\n"


@pytest.mark.parametrize("n_threads", [1, 2])
def test_training_is_interrupted_inside_gradients(n_threads):
    assert run(TRAINING, n_threads=n_threads) == "interrupted\n"
