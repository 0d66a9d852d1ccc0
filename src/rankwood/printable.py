"""Text of others, such as names in models, data and paths, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with an escape in place of every character that is not printable.

    A terminal obeys control characters; line ends would pass for lines of ours; marks that turn the direction of text
    hide what stands there; and bytes of a path that are no UTF-8 cannot be written at all.

    >>> print(printable("clicks\x1b[2J\nrankwood: done"))
    clicks\x1b[2J\nrankwood: done
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def human_bytes(count: float) -> str:
    """A size as people write it.

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
