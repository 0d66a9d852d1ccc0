"""Commands that read a model and write a smaller one: what `prune` and `shrink` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rankwood.cli.console import print_sentence, tell
from rankwood.cli.models import (
    WRITTEN,
    Missing,
    are_tables,
    check_format,
    check_output,
    content_to_keep,
    growth,
    load_data,
    load_models,
    read_renames,
    source_leaves,
    target_format,
    write_changed,
)
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.pruning.result import CleaverResult
    from rankwood.shrinking.result import ShrinkResult

Files = Mapping[str, Sequence[Path] | None]  # data files by the option that names them, such as "train"
Written = Literal["smaller", "converted", "copy"]  # what the file is: a smaller model, the input, or its very bytes


class Options(Protocol):
    """Options that both commands have."""

    @property
    def model(self) -> Path: ...
    @property
    def output(self) -> Path: ...
    @property
    def to_format(self) -> str | None: ...
    @property
    def missing(self) -> Missing: ...
    @property
    def zero_based(self) -> bool: ...
    @property
    def rename(self) -> list[str] | None: ...
    @property
    def threads(self) -> int | None: ...
    @property
    def as_json(self) -> bool: ...


def check(options: Options, files: Files, **more: Path | None) -> None:
    """Refuse outputs that are inputs or cannot be written, also for want of a package or a compiler.

    `more` are other files that the command writes, by the name of their option.
    """
    check_output(options.output, options.model, **files)
    check_format(options.output, options.to_format)
    named = {"--output": options.output} | {f"--{name}": path for name, path in more.items() if path is not None}
    for name, path in list(named.items())[1:]:
        check_output(path, options.model, *files.values())
        same = [other for other in named if other != name and named[other].resolve() == path.resolve()]
        if same:
            raise RankwoodError(f"{path} is both {same[0]} and {name}: write to another file")


@dataclass(frozen=True)
class Given:
    """The model and the data that were read.

    Parameters
    ----------
    model : Ensemble
        The model.
    target : str
        Name of the format to write.
    content : bytes or None
        The model file as it is, to be written again if no smaller model is accepted; None if it must be converted.
    n_bytes : int
        Size of the model file.
    data : dict from str to Dataset
        Data by the option that named its files; roles without files are left out. Tables that workers of a cluster are
        to read are what `open_source` makes of them.
    """

    model: Ensemble
    target: str
    content: bytes | None
    n_bytes: int
    data: dict[str, Any]


def read(options: Options, files: Files, *, on_cluster: bool = False) -> Given:
    """Read the model and all data, but for tables if the workers of a cluster read them."""
    loaded = load_models([options.model])
    (model,) = loaded.values()
    target = target_format(options.model, model, options.output, options.to_format)
    how: dict[str, Any] = {"zero_based": options.zero_based, "n_threads": options.threads, "quiet": options.as_json}
    how["rename"] = read_renames(options.rename)
    if on_cluster and how["rename"]:
        raise RankwoodError("--rename is for data that this process reads: leave --dask out, or rename in the files")
    data = {
        role: _left_to_workers(paths, loaded) if on_cluster and are_tables(paths) else load_data(paths, loaded, **how)
        for role, paths in files.items()
        if paths
    }
    (model,) = loaded.values()  # as wide as the data
    content = content_to_keep(options.model, model, target, options.output)  # now: it may change during the search
    return Given(model, target, content, options.model.stat().st_size, data)


def _left_to_workers(paths: Sequence[Path], models: dict[str, Ensemble]) -> Any:
    """Tables that workers are to read; models of unknown width become as wide as these **in the dict**."""
    from rankwood.cluster.sources import Spread, open_source
    from rankwood.formats.registry import widen

    (model,) = models.values()
    source = open_source(paths[0] if len(paths) == 1 else paths, coding=model.coding)
    if isinstance(source, Spread):
        n_features = len(source.partitions[0][0].features)
        for name, model in models.items():
            models[name] = widen(model, n_features)
    return source


def write(options: Options, given: Given, result: CleaverResult | ShrinkResult) -> Written:
    """Write the result: the smaller model, or else the input, byte for byte where its format stays."""
    changed = result.ensemble if result.accepted else None
    write_changed(given.model, changed, options.output, given.target, given.content, missing=options.missing)
    return "smaller" if result.accepted else "converted" if given.content is None else "copy"


def warn(given: Given, result: CleaverResult | ShrinkResult) -> None:
    """Warn of a significant loss on test data, and of more leaves than the model's own tool counts."""
    if result.is_loss:
        tell(f"warning: {_loss(result)}")
    if result.accepted and result.ensemble.n_leaves > source_leaves(given.model):
        tell(f"warning: {_larger(given.model, result.ensemble)}")


def _loss(result: CleaverResult | ShrinkResult) -> str:
    return (
        f"the smaller model is significantly worse on test data: {result.measure} {result.verdict()}; more validation "
        "queries, or a smaller --margin, ask for more before a model is accepted"
    )


def _larger(before: Ensemble, after: Ensemble) -> str:
    from rankwood.formats.registry import source_of

    return (
        f"the model has {after.n_leaves:,} leaves, more than the {source_leaves(before):,} of its "
        f"{source_of(before).get('format')} source: splits on categories or around zero are written as thresholds, so "
        "where its own tool serves it, it may be larger and slower than the source"
    )


def close(options: Options, given: Given, result: CleaverResult | ShrinkResult, written: Written) -> None:
    """Say how large the files are, what was shown, and what was written."""
    if written != "copy":
        print_sentence(_size_sentence(options, given, result))
    print_sentence(result.summary())
    tell(f"wrote {options.output} ({given.target}){WRITTEN.get(written, '')}")


def _size_sentence(options: Options, given: Given, result: CleaverResult | ShrinkResult) -> str:
    n_bytes, grown = options.output.stat().st_size, growth(given.model)
    return (
        f"{options.output.name} has {result.ensemble.n_leaves:,} leaves and {n_bytes:,} bytes, {options.model.name} "
        f"{given.model.n_leaves:,} leaves and {given.n_bytes:,} bytes" + (f"; {grown}" if grown else "")
    )


def answer(options: Options, given: Given, result: CleaverResult | ShrinkResult) -> dict[str, Any]:
    """Entries of the JSON object that both commands print.

    Leaves are given as the model's own tool counts them, as the model has them here, and after.
    """
    full, chosen, test = result.rows[0], result.chosen, result.test
    return {
        "model": str(options.output),
        "accepted": result.accepted,
        "n_trees_before": full.n_trees,
        "n_trees_after": result.ensemble.n_trees,
        "valid_before": full.valid,
        "valid_after": chosen.valid,
        "test_before": full.test,
        "test_after": chosen.test,
        "test_difference": None if test is None else test.difference,
        "test_interval": None if test is None else list(test.interval),
        "p_test": None if test is None else test.p_randomisation,
        "test_loss": result.is_loss,
        "timing": result.timings[0].conditions if result.timings else None,
        "measure": result.measure,
        "convention": result.convention.name,
        "margin": result.rule.margin,
        "alpha": result.rule.alpha,
        "judging": result.judging,
        "proof": None if result.proof is None else result.proof.as_dict(),
        "test_proof": None if result.test_proof is None else result.test_proof.as_dict(),
        "table": result.table,
        "n_leaves_source": source_leaves(given.model),
        "n_leaves_before": given.model.n_leaves,
        "n_leaves_after": result.ensemble.n_leaves,
        "bytes_before": given.n_bytes,
        "bytes_after": options.output.stat().st_size,
    }


def conditions(result: CleaverResult | ShrinkResult) -> str:
    """Batch and precision that all models were timed with; empty when none was timed."""
    if not result.timings:
        return ""
    return f", {result.timings[0].batch:,} documents per call, {result.timings[0].precision} precision"
