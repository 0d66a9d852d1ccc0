"""Numbers as C99 constants that stand for just one value, and thresholds as floats that compare alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray

PER_LINE = 8  # entries of a table


def c_number(value: float, suffix: str = "") -> str:
    """A constant of type double, or of type float with suffix "f". Short dyadic numbers are written in decimal, all
    others in hexadecimal: a decimal constant may be rounded as the compiler likes, a hexadecimal one is exact.

    >>> c_number(2.5), c_number(0.1), c_number(0.1875, "f"), c_number(-np.inf)
    ('2.5', '0x1.999999999999ap-4', '0.1875f', '-INFINITY')
    """
    if value != value:
        return "NAN"
    if value in (np.inf, -np.inf):
        return "INFINITY" if value > 0 else "-INFINITY"
    if abs(value) < 2**20 and value * 64 == int(value * 64):
        return f"{value!r}{suffix}"
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}{suffix}"


def c_table(entries: Iterable[str]) -> str:
    """Entries of an initialiser, a few per line. There is at least one: C knows no empty array.

    >>> c_table(map(str, range(10)))
    '{\\n  0, 1, 2, 3, 4, 5, 6, 7,\\n  8, 9\\n}'
    """
    texts = list(entries) or ["0"]
    lines = (", ".join(texts[first : first + PER_LINE]) for first in range(0, len(texts), PER_LINE))
    return "{\n  " + ",\n  ".join(lines) + "\n}"


def c_comment(text: str) -> str:
    """Text that cannot end a comment, nor make a careful compiler warn.

    >>> c_comment("a*/b")
    'a* /b'
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def round_down(thresholds: FloatArray) -> NDArray[np.float32]:
    """The largest float32 that is not above each threshold: a float32 is `<=` the one just when it is `<=` the other.

    >>> round_down(np.array([0.5, 1e300, 16777217.0])).tolist()
    [0.5, 3.4028234663852886e+38, 16777216.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        near = thresholds.astype(np.float32)
        down: NDArray[np.float32] = np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
    return down
