"""Types of the C++ kernels (native/bindings)."""

from rankwood.dtypes import FloatArray, OffsetArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...

class LambdaGradients:
    def __init__(
        self,
        gains: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None,
        query_weights: FloatArray | None,
        truncation: int,
        sigma: float,
        normalize: bool,
        cut_discounts: bool,
        n_threads: int,
    ) -> None: ...
    def compute(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None: ...
