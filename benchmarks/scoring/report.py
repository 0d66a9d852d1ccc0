"""The tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from scoring.compare import Plan, Row
from scoring.ours import DEFAULT_PRECISION

BASE = f"rankwood auto, {DEFAULT_PRECISION}"  # what users get; ratios are to it


def heading(machine: dict[str, Any], versions: dict[str, str]) -> Iterator[str]:
    yield f"{machine['cpu']} ({machine['cpu_numbers']}), {machine['n_cpus']} CPUs, load {machine['load']}"
    yield f"flags {' '.join(machine['flags'])}; rankwood uses {machine['isa']}, of {', '.join(machine['isas'])}"
    yield ", ".join(f"{package} {version}" for package, version in versions.items())


def table(rows: list[Row], title: str, plan: Plan, isa: str) -> Iterator[str]:
    measured = [row for row in rows if row.cells]
    base = next((row for row in measured if row.scorer == BASE and row.isa == isa), None)
    width = max((len(label(row, isa)) for row in measured), default=0) + 2
    for threads in plan.threads:
        yield f"\n{title}; {threads} thread{'s' * (threads > 1)}: us per document by batch, and how many times {BASE}"
        batches = "".join(f"{batch:>19,}" for batch in plan.batches)
        yield f"{'':{width}}{batches}{'prepare s':>11}{'deviation':>11}"
        for row in measured:
            if not any(threads == key[0] for key in row.cells):
                continue
            cells = "".join(f"{cell_text(row, base, threads, batch):>19}" for batch in plan.batches)
            prepare = "-" if row.prepare_s is None else f"{row.prepare_s:.3f}"
            differs = "other model" if row.deviation is None else f"{row.deviation:.0e}"
            yield f"{label(row, isa):{width}}{cells}{prepare:>11}{differs:>12}"
    yield from footnotes(rows, plan)


def label(row: Row, isa: str) -> str:
    return row.scorer if row.isa in (None, isa) else f"{row.scorer} [{row.isa}]"


def cell_text(row: Row, base: Row | None, threads: int, batch: int) -> str:
    if (threads, batch) not in row.cells:
        return "-"
    cell = row.cells[threads, batch]
    cut = "*" if cell.n_docs < batch else ""
    text = f"{significant(cell.us_per_doc)}{cut}"
    if base is None or (threads, batch) not in base.cells:
        return text
    return f"{text} {significant(cell.us_per_doc / base.cells[threads, batch].us_per_doc, 2):>6}x"


def significant(value: float, digits: int = 3) -> str:
    """At least so many digits, never an exponent."""
    decimals = max(0, digits - len(str(int(value))))
    return f"{value:,.{decimals}f}"


def footnotes(rows: list[Row], plan: Plan) -> Iterator[str]:
    largest = max(plan.batches)
    cut = {cell.n_docs for row in rows for (_, batch), cell in row.cells.items() if cell.n_docs < batch}
    if cut:
        yield f"* too slow for {largest:,} documents in one call, or no more of them: {sorted(cut)} were scored"
    for row in rows:
        if row.note and row.cells:
            yield f"{row.scorer}: {row.note}"
        if row.left_out:
            yield f"{row.scorer} left out: {row.left_out}"
    yield from thread_warnings(rows)
    yield from noise_warnings(rows)


def thread_warnings(rows: list[Row]) -> Iterator[str]:
    """One thread must be one: the CPU time of the calling thread tells."""
    for row in rows:
        shares = [cell.elsewhere for (threads, batch), cell in row.cells.items() if threads == 1 and batch >= 100]
        if shares and max(shares) > 0.1:
            yield f"{row.scorer}: told to use one thread, it spent up to {max(shares):.0%} of its CPU time in others"


def noise_warnings(rows: list[Row]) -> Iterator[str]:
    """One thread should have a processor to itself: CPU time tells that too."""
    shares = [cell.cpu_share for row in rows for (threads, _), cell in row.cells.items() if threads == 1]
    if shares and statistics.median(shares) < 0.95:
        got = statistics.median(shares)
        yield f"NOISY: one thread got {got:.0%} of a CPU; other work disturbed these figures, those of two threads most"
