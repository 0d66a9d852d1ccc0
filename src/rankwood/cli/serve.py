"""`rankwood serve`: scores over HTTP."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwood.cli.console import fail, print_json, tell
from rankwood.cli.models import AsJson
from rankwood.cli.options import takes_options
from rankwood.errors import RankwoodError

if TYPE_CHECKING:
    from rankwood.serving.shelf import Shelf


@dataclass(frozen=True)
class ServeOptions:
    """Arguments and options of `rankwood serve`."""

    models: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL...", help="Model files. Unless named, called as the file without suffix."),
    ]
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen at: 127.0.0.1 unless given; 0.0.0.0 is every one of this machine."),
    ] = None
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen at: 8000 unless given; 0 takes a free one.")
    ] = None
    unix: Annotated[Path | None, typer.Option(metavar="FILE", help="Listen at a socket file instead of a port.")] = None
    threads: Annotated[
        int | None, typer.Option(min=1, help="Requests that are scored at the same time; one per CPU unless given.")
    ] = None
    watch: Annotated[bool, typer.Option("--watch", help="Load a model again when its file changes.")] = False
    admin_token: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the token that lets requests swap models, by PUT /models/NAME.",
        ),
    ] = None
    max_rows: Annotated[int, typer.Option(min=1, help="Rows that a request may have.")] = 10_000
    max_body_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes that a request may have.")] = 16.0
    max_model_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes that a model sent by PUT may have.")] = (
        1000.0
    )
    max_requests: Annotated[int, typer.Option(min=1, help="Requests under way at the same time; others get 503.")] = 64
    timeout: Annotated[float, typer.Option(min=0.01, help="Seconds that a request may take, its body included.")] = 30.0
    grace: Annotated[float, typer.Option(min=0.0, help="Seconds that requests may still take after SIGTERM.")] = 30.0
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for every answer.")] = False
    as_json: AsJson = False


@takes_options
def serve(options: ServeOptions) -> None:
    """Serve models over HTTP: scores of batches in JSON and Arrow, health, metrics, swaps without a lost request.

    POST /models/NAME/score takes {"rows": [[1.5, null], [2, 0]]} and more; GET /openapi.json describes all of it. Without --admin-token nothing can be changed over HTTP. SIGHUP loads all models again.

    SIGTERM ends it when the requests under way are answered, with status 0; so does Ctrl-C, with 130. With --json the address and the models are printed as one object, on one line, when requests are taken.
    """  # noqa: E501  typer keeps line ends
    from rankwood.serving.batch import Limits
    from rankwood.serving.server import Settings
    from rankwood.serving.server import serve as run
    from rankwood.serving.shelf import named_files

    if options.unix is not None and (options.host is not None or options.port is not None):
        raise RankwoodError("--unix does not go with --host or --port: a socket file has neither")
    settings = Settings(
        files=named_files(options.models),
        host=Settings.host if options.host is None else options.host,
        port=Settings.port if options.port is None else options.port,
        unix=options.unix,
        threads=options.threads,
        limits=Limits(
            body_bytes=int(options.max_body_mb * 1e6),
            rows=options.max_rows,
            requests=options.max_requests,
            seconds=options.timeout,
            head_seconds=min(options.timeout, Limits.head_seconds),
            model_bytes=int(options.max_model_mb * 1e6),
        ),
        watch=options.watch,
        token=None if options.admin_token is None else read_token(options.admin_token),
        grace_seconds=options.grace,
        access=options.access_log,
    )

    def on_start(address: str, port: int | None, shelf: Shelf) -> None:
        if options.as_json:
            print_json({"address": address, "port": port, "models": [served.facts for served in shelf]}, None)
            sys.stdout.flush()
        models = ", ".join(
            f"{one.name} ({one.model.n_trees:,} trees, {one.model.n_features:,} features)" for one in shelf
        )
        tell(f"serving {models} at {address}")

    received = run(settings, tell=tell, on_start=on_start)
    if received == signal.SIGINT:
        fail("interrupted", 130)
    tell("stopped")


def read_token(path: Path) -> str:
    """The token in a file: printable ASCII, at least 16 characters."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        raise RankwoodError(f"{path}: the token cannot be read: {reason}") from None
    if len(token) < 16 or not token.isprintable() or " " in token:
        raise RankwoodError(f"{path}: a token has at least 16 printable characters, without spaces")
    return token
