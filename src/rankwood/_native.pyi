"""Types of the C++ kernels (native/bindings)."""

import numpy as np
from numpy.typing import NDArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...

# Reading and writing SVMlight text (bind_svmlight.cpp)

TEXT_PADDING: int

class SvmlightReader:
    def __init__(
        self,
        n_features: int | None,
        *,
        ignore_beyond: bool,
        absent: float,
        zero_based: bool,
        document_ids: bool,
        max_bytes: int,
        max_text: str,
        chunk_bytes: int,
        careful_only: bool,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def has_qid(self) -> bool: ...
    def start_file(self) -> None: ...
    def parse(self, buffer: NDArray[np.uint8], size: int, last: bool, text_left: int, n_threads: int) -> int: ...
    def take(
        self,
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.int64] | list[str], NDArray[np.int64], list[str] | None
    ]: ...

def format_svmlight(
    X: NDArray[np.float32],
    labels: NDArray[np.float64],
    query: NDArray[np.int64],
    id_text: bytes,
    id_ends: NDArray[np.int64],
    comment_text: bytes,
    comment_ends: NDArray[np.int64] | None,
    *,
    zero_based: bool,
    absent: float | None,
    n_threads: int,
) -> list[bytes]: ...
def read_at(file: int, offset: int, to: NDArray[np.uint8], n_threads: int) -> int: ...
