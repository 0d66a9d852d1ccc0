"""Scoring: rankwood's engines against LightGBM, XGBoost, CatBoost, ONNX Runtime, treelite, tl2cgen, lleaves, ydf and
scikit-learn, on the same documents and the same trees in the same run.

    python benchmarks/score.py [--quick] [--shapes 1000x64 forest] [--batches 1 1000] [--threads 1] [--json FILE]
                               [--skip lleaves tl2cgen ifelse] [--only rankwood lightgbm] [--isas avx2 baseline]
                               [--data FILE] [--missing SHARE]

The peers:   pip install lightgbm xgboost-cpu catboost onnxruntime onnx treelite tl2cgen ydf
One that is not installed is left out and named. lleaves needs an llvmlite older than 0.45, so it gets an environment of
its own, made with pip in the cache directory on first use, and works in a process of its own; where that cannot be made
it is left out with a sentence.

What is scored: 60,000 made-up documents shaped like MSLR-WEB (136 features, no missing values; --missing for some) or
the second half of the queries of an SVMlight file (--data). LightGBM learns the models named TREESxLEAVES from as many
other documents, scikit-learn the forest of full depth. XGBoost, ONNX Runtime, ydf, treelite and lleaves get exactly
these trees. CatBoost cannot and gets as many oblivious trees of as many leaves: less work, so read its figures apart.

What is timed: calls from a float32 matrix in memory to scores, with whatever conversion and quantisation the tool does
inside. Median of repeated calls after a warm-up, on different rows as long as there are any; a cell gets a fixed time.
Where a call with the largest batch would take longer than five seconds it gets fewer documents, marked *. Each tool is
told the number of threads in its own way; the CPU time of the calling thread shows whether one thread was one. What a
tool needs once per model is listed as "prepare", without reading our file and without our conversion into its format.

Before a time counts, scores must agree with our reference engine to 1e-5 of their size; the largest deviation is in the
table. Ratios are to engine "auto" in the precision that `Ensemble.score` has by default.

Rows marked [avx2] or [baseline] are ours again, one thread, in a process that RANKWOOD_ISA keeps to that instruction
set. Default: every one that this CPU has; `--isas` alone means none.

Models, the environment of lleaves and what compilers made are kept in $XDG_CACHE_HOME/rankwood-benchmarks or
~/.cache/rankwood-benchmarks. The first run takes long: lleaves compiles 1000x64 for minutes, twice, tl2cgen too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scoring.compare import Plan, Row, run_shape
from scoring.lleaves import Lleaves, LleavesFloat32
from scoring.machine import describe_machine, versions
from scoring.models import SHAPES, Source, Subject, subject
from scoring.ours import DEFAULT_PRECISION, Rankwood
from scoring.peers import Peer
from scoring.report import BASE, heading, table
from scoring.timing import Budget

import rankwood as rw
from rankwood.scoring.engines import ENGINES
from rankwood.system import active_isa, available_isas
from scoring import peers as peer_module

PEERS: list[type[Peer]] = [
    peer_module.LightGBM,
    peer_module.XGBoost,
    peer_module.OnnxRuntime,
    peer_module.TreeliteGTIL,
    peer_module.Tl2cgen,
    Lleaves,
    LleavesFloat32,
    peer_module.Ydf,
    peer_module.CatBoost,
    peer_module.ScikitLearn,
]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 10, 100, 1000, 60_000])
    parser.add_argument("--threads", nargs="+", type=int, help="default: 1 2")
    parser.add_argument("--quick", action="store_true", help="0.1 s per cell, one thread, no --isas unless told")
    parser.add_argument("--skip", nargs="+", default=[], help=f"of {' '.join([*ENGINES, *map(key_of, PEERS)])}")
    parser.add_argument("--only", nargs="+", help="of these or 'rankwood' for all engines; auto runs in any case")
    parser.add_argument("--isas", nargs="*", help="instruction sets to force, each in a process of its own")
    parser.add_argument("--data", help="SVMlight file instead of made-up documents")
    parser.add_argument("--missing", type=float, default=0.0, help="share of values missing in some made-up features")
    parser.add_argument("--seconds", type=float, help="per cell; default 0.3")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--ours-only", action="store_true", help=argparse.SUPPRESS)  # the processes of --isas
    options = parser.parse_args()
    known = ["rankwood", *ENGINES, *map(key_of, PEERS)]
    for word in [*options.skip, *(options.only or [])]:
        if not any(matches(name, [word]) for name in known):
            parser.error(f"nothing is called {word!r}; there are {', '.join(known)}")
    if options.threads is None:
        options.threads = [1] if options.quick else [1, 2]
    if options.seconds is None:
        options.seconds = 0.1 if options.quick else 0.3
    if options.isas is None:
        options.isas = [] if options.quick else [isa for isa in available_isas() if isa != active_isa()]
    return options


def key_of(peer: type[Peer]) -> str:
    """How a peer is called on the command line; its first part will do."""
    return peer.name.lower().replace(" ", "-")


def matches(name: str, words: list[str]) -> bool:
    return any(name == word.lower() or name.startswith(f"{word.lower()}-") for word in words)


def chosen_peers(options: argparse.Namespace) -> list[Peer]:
    if options.ours_only:
        return []
    keys = {key_of(peer): peer for peer in PEERS}
    return [
        peer()
        for key, peer in keys.items()
        if not matches(key, options.skip) and (options.only is None or matches(key, options.only))
    ]


def chosen_engines(options: argparse.Namespace) -> list[str]:
    every = options.only is None or "rankwood" in options.only
    chosen = [name for name in ENGINES if name not in options.skip and (every or name in options.only)]
    if options.ours_only:  # plain traversal is the same for every instruction set
        chosen = [name for name in chosen if name != "reference"]
    return ["auto", *chosen]


def rows_of_other_isa(isa: str, shape: str, options: argparse.Namespace) -> list[Row]:
    """Our rows from a process that is kept to an instruction set."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        words = ["--ours-only", "--isas", "--threads", 1, "--shapes", shape, "--batches", *options.batches]
        words += ["--seconds", options.seconds, "--missing", options.missing, "--json", file]
        words += ["--skip", *options.skip] * bool(options.skip) + ["--only", *(options.only or [])] * bool(options.only)
        words += ["--data", options.data] * bool(options.data)
        command = [sys.executable, __file__, *map(str, words)]
        subprocess.run(command, env=os.environ | {"RANKWOOD_ISA": isa}, stdout=subprocess.DEVNULL, check=True)
        return [Row.from_json(row) for row in json.loads(file.read_text())["rows"]]


def drift(subject: Subject, rows: list[Row], plan: Plan) -> str:
    """Measures the first row again: other work on the machine, or a processor that got hot, would show."""
    scorer = Rankwood("auto", DEFAULT_PRECISION)
    scorer.prepare(subject)
    batch = max([batch for batch in plan.batches if batch <= 1000], default=plan.batches[0])
    again = scorer.measure(subject.source.X, batch, plan.threads[0], plan.budget).us_per_doc
    before = rows[0].cells[plan.threads[0], batch].us_per_doc
    return f"{BASE} measured again at the end, batch {batch:,}: {again / before - 1:+.0%}"


def main() -> None:
    options = parse_arguments()
    source = Source(options.data, options.missing)
    plan = Plan(options.batches, options.threads, Budget(seconds=options.seconds))
    machine, isa = describe_machine(), active_isa()
    packages = ["rankwood", "numpy", *(package for peer in PEERS for package in peer.packages)]
    found = {"rankwood": rw.__version__} | versions(packages)
    print(*heading(machine, found), sep="\n", flush=True)
    figures: dict[str, Any] = {"machine": machine, "versions": found, "options": vars(options) | {"json": None}}
    all_rows: list[Row] = []
    started = time.perf_counter()
    for shape in options.shapes:
        model = subject(shape, source)
        rows = list(run_shape(model, chosen_peers(options), chosen_engines(options), plan, isa))
        again = drift(model, rows, plan)
        for other in options.isas:
            rows += rows_of_other_isa(other, shape, options)
        title = f"{shape}: {model.ensemble}, {len(source.X):,} documents"
        print(*table(rows, title, plan, isa), again, sep="\n", flush=True)
        all_rows += rows
        if options.json:
            figures["rows"] = [row.as_json() for row in all_rows]
            options.json.write_text(json.dumps(figures, indent=1))
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    if any(row.left_out for row in all_rows if row.isa):
        raise SystemExit("an engine of rankwood failed or disagrees with the reference: see above")


if __name__ == "__main__":
    main()
