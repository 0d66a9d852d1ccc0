"""How long it takes to read model files of other tools: rankwood, treelite, lleaves' parser, and the library itself.

    python benchmarks/import_models.py [--runs 5] [--large]

LightGBM models are made of trained trees, repeated: 1,000 trees of 64 leaves, and with --large a file of some 100 MB.
The best and the median of the runs; readers of the same file take turns. lleaves needs an environment of its own
(`benchmarks/scoring` makes it) and is left out when there is none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rankwood as rw

LLEAVES_SCRIPT = """
import sys, time
from lleaves.compiler.ast import parse_to_ast
start = time.perf_counter()
parse_to_ast(sys.argv[1])
print(time.perf_counter() - start)
"""


def trained(n_leaves: int) -> tuple[Any, Any]:
    import lightgbm

    data = rw.make_ranking(n_queries=200, docs_per_query=60, n_features=136, seed=0)
    sizes = np.diff(data.offsets) if hasattr(data, "offsets") else [60] * 200
    parameters = {"objective": "lambdarank", "num_leaves": n_leaves, "min_data_in_leaf": 5, "verbose": -1}
    return lightgbm.train(parameters, lightgbm.Dataset(data.X, data.y, group=sizes), 50), data


def repeated(text: str, n_trees: int) -> str:
    """The model text with its trees again and again."""
    head, *rest = text.split("\nTree=")
    last, tail = rest[-1].split("\nend of trees", 1)
    bodies = [block.split("\n", 1)[1] for block in [*rest[:-1], last]]
    blocks = [f"Tree={number}\n{bodies[number % len(bodies)]}\n" for number in range(n_trees)]
    lines = head.rstrip("\n").split("\n")
    sizes = "tree_sizes=" + " ".join(str(len(block)) for block in blocks)
    lines = [sizes if line.startswith("tree_sizes=") else line for line in lines]
    return "\n".join(lines) + "\n\n" + "".join(blocks) + "end of trees" + tail


def readers(path: Path) -> dict[str, Callable[[], float]]:
    """Seconds that each tool takes for the file."""

    def timed(read: Callable[[], Any]) -> Callable[[], float]:
        def run() -> float:
            start = time.perf_counter()
            read()
            return time.perf_counter() - start

        return run

    found = {"rankwood": timed(lambda: rw.load_model(path))}
    try:
        import lightgbm

        found["lightgbm"] = timed(lambda: lightgbm.Booster(model_file=str(path)))
    except ImportError:
        print("LIGHTGBM ABSENT", file=sys.stderr)
    try:
        import treelite

        found["treelite"] = timed(lambda: treelite.frontend.load_lightgbm_model(str(path)))
    except ImportError:
        print("TREELITE ABSENT", file=sys.stderr)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = Path.home() / ".cache" / "rankwood-benchmarks" / f"lleaves-{version}" / "bin" / "python"
    if python.exists():
        command = [str(python), "-c", LLEAVES_SCRIPT, str(path)]
        found["lleaves parser"] = lambda: float(subprocess.run(command, check=True, capture_output=True).stdout)
    else:
        print("LLEAVES ABSENT: run the scoring benchmark once, which makes its environment", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    booster, _ = trained(64)
    text = booster.model_to_string()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        subjects = [("1,000 x 64", 1000, options.runs)]
        if options.large:
            per_tree = len(text) / 50
            subjects.append(("100 MB", int(100e6 / per_tree), min(options.runs, 3)))
        for name, n_trees, n_runs in subjects:
            path = Path(folder) / "model.txt"
            path.write_text(repeated(text, n_trees))
            tools = readers(path)
            if n_trees > 5000:
                tools.pop("lleaves parser", None)  # takes minutes
            times: dict[str, list[float]] = {tool: [] for tool in tools}
            for _ in range(n_runs):
                for tool, run in tools.items():
                    times[tool].append(run())
            for tool, seconds in times.items():
                row = {"model": name, "mb": path.stat().st_size / 1e6, "reader": tool, "best_s": min(seconds)}
                rows.append(row | {"median_s": statistics.median(seconds)})
                if not options.json:
                    print(f"{name:12} {row['mb']:7.1f} MB  {tool:16} {min(seconds):8.3f} s best", end="")
                    print(f" {rows[-1]['median_s']:8.3f} s median")
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
