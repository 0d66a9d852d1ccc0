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
