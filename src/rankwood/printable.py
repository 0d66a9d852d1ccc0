"""Texts to show: names from models, data and paths without control characters, and sizes in bytes."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Text with an escape in place of every character that is not printable.

    A terminal would obey control characters, line ends would look like lines that rankwood prints, marks of direction
    would hide text, and bytes of a path that are not UTF-8 cannot be printed at all.

    Examples
    --------
    >>> print(printable("clicks\x1b[2J\nrankwood: done"))
    clicks\x1b[2J\nrankwood: done
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def human_bytes(count: float) -> str:
    """Text of a size in bytes, in decimal units.

    Examples
    --------
    >>> human_bytes(999), human_bytes(472_129_615), human_bytes(26_499_490_813)
    ('999 B', '472.1 MB', '26.5 GB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"
