"""Types of the C++ kernels (native/bindings)."""

from rankwood.dtypes import OffsetArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...

# significance
def count_sign_flips(
    magnitudes: OffsetArray,
    bound: int,
    two_sided: bool,
    n_permutations: int,
    enumerate: bool,
    seed: int,
    n_threads: int,
) -> int: ...
def bootstrap_sums(values: OffsetArray, seed: int, n_threads: int, sums: OffsetArray) -> None: ...
