"""Runs in lleaves' own environment: reads requests, lines of JSON, from standard input and answers in kind."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import lleaves
import numpy as np
from scoring.timing import Budget, call_times, measure


class Worker:
    def __init__(self) -> None:
        self.model: Any = None
        self.matrices: dict[str, Any] = {}

    def load(self, matrix: str) -> Any:
        if matrix not in self.matrices:
            self.matrices[matrix] = np.load(matrix)
        return self.matrices[matrix]

    def versions(self) -> dict[str, Any]:
        return {package: metadata.version(package) for package in ("lleaves", "llvmlite", "numpy")}

    def compile(self, model: str, cache: str, use_fp64: bool) -> dict[str, Any]:
        """Compile, or load what was compiled before; in any case tell how long compiling takes, in CPU time: minutes
        of one thread, which other work on the machine would stretch."""
        facts = Path(f"{cache}.json")
        if not facts.exists():
            Path(cache).unlink(missing_ok=True)  # of a run that was ended
        start = time.process_time()
        self.model = lleaves.Model(model_file=model)
        self.model.compile(cache=cache, raw_score=True, use_fp64=use_fp64)
        if not facts.exists():
            facts.write_text(json.dumps({"prepare_s": time.process_time() - start}))
        return dict(json.loads(facts.read_text()))

    def score(self, matrix: str) -> dict[str, Any]:
        file = f"{matrix}.scores.npy"
        np.save(file, self.model.predict(self.load(matrix), n_jobs=1).astype(np.float64))
        return {"scores": file}

    def measure(self, matrix: str, batch: int, n_threads: int, **budget: Any) -> dict[str, Any]:
        def score(X: Any) -> Any:
            return self.model.predict(X, n_jobs=n_threads)

        return asdict(measure(score, self.load(matrix), batch, Budget(**budget)))

    def latency(self, matrix: str, batch: int, n_threads: int, seconds: float) -> dict[str, Any]:
        def score(X: Any) -> Any:
            return self.model.predict(X, n_jobs=1)

        return call_times(score, self.load(matrix), batch, n_threads, seconds).summary()


def main() -> None:
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
