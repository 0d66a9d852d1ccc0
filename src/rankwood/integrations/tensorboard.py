"""TensorBoard: a training as scalars."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from rankwood.errors import RankwoodError
from rankwood.integrations.logger import Logger
from rankwood.packages import need


class TensorBoardLogger(Logger):
    """A callback that logs measures as TensorBoard's scalars, and parameters as a text.

    Parameters
    ----------
    writer : path-like or SummaryWriter
        A folder, which the package tensorboardX writes to; or a writer that is open already: that of tensorboardX, of
        PyTorch, or any with `add_scalar(name, value, step)`.
    period : int, default 1
        Rounds between two that are logged.
    """

    def __init__(self, writer: Any, *, period: int = 1) -> None:
        super().__init__(period=period)
        if isinstance(writer, (str, os.PathLike)):
            writer = need("tensorboardX", "writing TensorBoard files").SummaryWriter(os.fspath(writer))
        elif not hasattr(writer, "add_scalar"):
            raise RankwoodError(f"writer must be a folder or have add_scalar, got {type(writer).__name__}")
        self.writer = writer

    def log_params(self, params: Mapping[str, Any]) -> None:
        if hasattr(self.writer, "add_text"):  # TensorBoard's own writer has scalars alone
            lines = json.dumps(dict(params), indent=1).split("\n")
            self.writer.add_text("parameters", "\n".join(f"    {line}" for line in lines), 0)  # Markdown's code

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        if hasattr(self.writer, "flush"):
            self.writer.flush()
