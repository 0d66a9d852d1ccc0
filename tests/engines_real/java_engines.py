"""Models in the engines that serve them: jars by Maven, a small Java program for each, which scores all models."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_kinds import KINDS, model_of

import rankwood as rw
from jdks import jdks
from rankwood.formats.lightgbm import ZERO
from rankwood.formats.search_engines import solr_thresholds
from rankwood.formats.writing import plain
from rankwood.scoring.agreement import adversarial_rows
from rankwood.scoring.c_source import round_down
from strategies.exports import single_bound

HERE = Path(__file__).parent
MAX_ROWS = 2000
PLAIN_NAMES = [f"f{number}" for number in range(8)]
ODD_NAMES = ["title bm25", "clicks", 'in "quotes"', "preis_über", "a.b", "[x]", "x<y", "7"]
RANK_FEATURES = ["bm25(title)", "attribute(clicks)", "fieldMatch(title).proximity", "query(budget)", "matchCount",
                 "freshness(published).logscale", "attribute(shop)", "nativeRank(title,body)"]  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A format of rankwood's, as one engine reads it.

    Parameters
    ----------
    name : str
        Name in the table.
    format, file : str
        Format to write, and name of the file in each folder.
    options : dict
        Options of the format.
    names : list of str
        Names of the features.
    single : bool
        Whether the engine takes values in float32.
    sums : {"exact", "double", "single"}
        How far scores may be off: not at all, by the order of sums in float64, or by sums in float32.
    zero : bool
        Whether it takes a missing value for 0.
    infinite : bool
        Whether it takes infinite values.
    tiny : bool
        Whether it tells values below 1e-35 from 0.
    lowered : bool
        Whether it reads thresholds one float32 too low: scores are compared with those of such a model, if it has
        finite thresholds only, and the table has no row for it.
    lifted : bool
        Whether it adds a constant to scores so that none is negative.
    """

    name: str
    format: str
    file: str
    options: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=lambda: PLAIN_NAMES)
    single: bool = False
    sums: str = "exact"
    zero: bool = False
    infinite: bool = True
    tiny: bool = True
    lowered: bool = False
    lifted: bool = False


@dataclass(frozen=True)
class Engine:
    """A program and a pom in a folder, and what they read.

    Parameters
    ----------
    folder, program, pom : str
        Folder, class of the Java program and name of the pom there.
    targets : tuple of Target
        What the program reads.
    version : str, optional
        Version to run instead of the pom's.
    heavy : bool
        Whether to run it only when told, because much is downloaded.
    goal : str
        What Maven shall do: copy the jars that the pom lists, or with all that they depend on.
    java : int
        Oldest JDK that it runs on.
    """

    folder: str
    program: str
    targets: tuple[Target, ...]
    pom: str = "pom.xml"
    version: str | None = None
    heavy: bool = False
    goal: str = "copy"
    java: int = 17

    @property
    def version_run(self) -> str:
        text = (HERE / self.folder / self.pom).read_text()
        return self.version or re.findall("<engine.version>(.*)</engine.version>", text)[0]

    @property
    def title(self) -> str:
        return f"{self.folder} {self.version_run}"


@dataclass(frozen=True)
class Outcome:
    """How scores of an engine compare with rankwood's: rows with values that a warning spoke of are apart."""

    kind: str
    rows: int = 0
    difference: float = 0.0
    bound: float = 0.0
    warned_rows: int = 0
    warned_difference: float = 0.0
    refused: str = ""


def program(engine: Engine, folder: Path) -> list[str]:
    """Command that runs the engine's program, its jars fetched and its sources compiled; else a loud skip.

    It is the same for every test of an engine.
    """
    if engine.title not in _PROGRAMS:
        _PROGRAMS[engine.title] = _program(engine, folder)
    return _PROGRAMS[engine.title]


_PROGRAMS: dict[str, list[str]] = {}


def _program(engine: Engine, folder: Path) -> list[str]:
    if engine.heavy and "RANKWOOD_REAL_ENGINES" not in os.environ:
        pytest.skip(f"{engine.title} WAS NOT RUN: set RANKWOOD_REAL_ENGINES=1 to fetch and run it")
    maven, homes = shutil.which("mvn"), [home for version, home in jdks().items() if version >= engine.java]
    if maven is None or not homes:
        pytest.skip(f"{engine.title} WAS NOT RUN: NO MAVEN, OR NO JDK FROM {engine.java} ON; install both")
    javac, java = homes[0] / "bin" / "javac", homes[0] / "bin" / "java"
    jars, classes = folder / "jars", folder / "classes"
    pom = HERE / engine.folder / engine.pom
    command = [maven, "-q", "-B", "-f", pom, f"dependency:{engine.goal}", f"-Djars={jars}"]
    if engine.version is not None:
        command.append(f"-Dengine.version={engine.version}")
    with open(Path(tempfile.gettempdir()) / f"rankwood-maven-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Maven's folder is not made for two that download at once
        fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode:
        said = next((line for line in fetched.stdout.splitlines() if "ERROR" in line), "it says nothing")
        pytest.skip(f"{engine.title} WAS NOT RUN: MAVEN CANNOT FETCH IT: {said[:300]}")
    sources = [HERE / "Rows.java", HERE / engine.folder / f"{engine.program}.java"]
    subprocess.run([javac, "-nowarn", "-cp", jars / "*", "-d", classes, *sources], check=True)
    return [str(java), "-cp", f"{classes}{os.pathsep}{jars / '*'}", engine.program]


def run(engine: Engine, folder: Path) -> dict[str, list[Outcome]]:
    """Outcomes of every kind of model, by the name of the target."""
    command = program(engine, folder)
    jobs = [
        Job(target, kind, _model(kind), folder / target.name / kind)
        for target in engine.targets
        for kind in KINDS
        if not (target.lowered and kind in ("edges", "categorical"))
    ]
    if (HERE / engine.folder / "home").exists():
        shutil.copytree(HERE / engine.folder / "home", folder / "home")
    execute(command, [job.folder for job in jobs if not job.refused], folder)
    outcomes: dict[str, list[Outcome]] = {target.name: [] for target in engine.targets}
    for job in jobs:
        outcomes[job.target.name].append(job.outcome())
    _note(engine, outcomes)
    return outcomes


def execute(command: list[str], arguments: Sequence[object], folder: Path, *, status: int = 0) -> str:
    """What a program prints, on standard error as well; it must end with this status."""
    done = subprocess.run(
        [*command, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def _note(engine: Engine, outcomes: dict[str, list[Outcome]]) -> None:
    """Leave the outcomes for the table of `tools/engines-table`, if it asks for them."""
    if "RANKWOOD_ENGINES_RESULTS" in os.environ:
        for target in engine.targets:
            found = [vars(one) for one in outcomes[target.name]]
            note = {"target": target.name, "version": engine.version_run, "sums": target.sums, "outcomes": found}
            path = Path(os.environ["RANKWOOD_ENGINES_RESULTS"], f"{target.name} {engine.version_run}.json")
            if not target.lowered:
                path.write_text(json.dumps(note))


def write_rows(folder: Path, names: list[str], X: np.ndarray) -> None:
    """Write rows as `Rows.java` reads them."""
    (folder / "names.txt").write_text("\n".join(names) + "\n")
    (folder / "rows.bin").write_bytes(np.array(X.shape, dtype=">i4").tobytes() + X.astype(">f8").tobytes())


def read_scores(folder: Path) -> np.ndarray:
    return np.frombuffer((folder / "scores.bin").read_bytes(), dtype=">f8")


@lru_cache
def _model(kind: str) -> rw.Ensemble:
    return model_of(kind)


class Job:
    """One model in one target's format: written for the program, then compared with what it scored."""

    def __init__(self, target: Target, kind: str, model: rw.Ensemble, folder: Path) -> None:
        self.target, self.kind, self.folder, self.refused = target, kind, folder, ""
        folder.mkdir(parents=True)
        self.model = model.replace(feature_names=target.names)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                rw.save_as(self.model, folder / target.file, target.format, **target.options)
            except rw.ModelError as error:
                self.refused = str(error)
                return
        self.rows = self._rows(any("infinite thresholds" in str(warning.message) for warning in said))
        write_rows(folder, target.names, self.rows)

    def _rows(self, clipped: bool) -> np.ndarray:
        rows = adversarial_rows(self.model, max_rows=MAX_ROWS)
        X = (rows.single if self.target.single else rows.double).astype(np.float64)
        if not self.target.infinite:
            X = np.where(np.isinf(X), 1.0, X)
        if clipped:  # values that a warning speaks of
            largest = np.finfo(np.float32 if self.target.single else np.float64).max
            X = np.where(np.abs(X) >= largest, 1.0, X)
        return X if self.target.tiny else np.where(np.abs(X) <= ZERO, 0.0, X)

    def outcome(self) -> Outcome:
        if self.refused:
            return Outcome(self.kind, refused=self.refused)
        error = self.folder / "error.txt"
        assert not error.exists(), f"{self.target.name}, {self.kind}: {error.read_text()}"
        off = np.abs(read_scores(self.folder) - self._expected())
        warned = self._warned()
        return Outcome(
            self.kind,
            rows=int((~warned).sum()),
            difference=float(off[~warned].max()),
            bound=self._bound(),
            warned_rows=int(warned.sum()),
            warned_difference=float(off[warned].max(initial=0.0)),
        )

    def _expected(self) -> np.ndarray:
        model, X = self.model, self.rows
        if self.target.lowered:
            below = np.nextafter(round_down(model.threshold), np.float32(-np.inf))
            model = model.replace(threshold=below.astype(np.float64))
        scores = model.score(np.where(np.isnan(X), 0.0, X) if self.target.zero else X)
        if self.target.lifted:
            leaves = plain(model)
            scores -= min(0.0, np.minimum.reduceat(leaves.leaf_value, leaves.leaf_offsets[:-1]).sum())
        return scores

    def _warned(self) -> np.ndarray:
        """Rows with values between a threshold and the nearest that Solr can give."""
        warned = np.zeros(len(self.rows), dtype=bool)
        if self.target.format == "solr":
            reached, wanted = solr_thresholds(self.model.threshold)[1], round_down(self.model.threshold)
            for node in np.flatnonzero(reached != wanted).tolist():
                low, high = sorted((reached[node], wanted[node]))
                column = self.rows[:, self.model.feature[node]]
                warned |= (column > low) & (column <= high)
        return warned

    def _bound(self) -> float:
        if self.target.sums == "exact":
            return 0.0
        single = float(single_bound(self.model))
        return single if self.target.sums == "single" else single * 2.0**-29
