"""Texts that terminals, pages, tables and files may take for something else, one of each kind."""

from __future__ import annotations

KINDS = {
    "markup": "[bold]x[/bold] [/] [link=file:///etc]y",
    "escapes": "\x1b]0;owned\x07\x1b[2J\x9b31m",
    "line ends": "a\nrankwood: all is well\r\nb\u2028c\x85d",
    "direction": "\u202eevil\u2066\u200f\u05d0\u05d1",
    "surrogate": "a\ud800b\udcff",
    "long": "x" * 100_000,
    "empty of width": "\u200b\ufeff\u00ad",
    "nul": "a\x00b",
    "html": "</script><script>alert(1)</script><img src=x onerror=alert(1)> & \"'",
    "table": 'a|b & c_d % {e} \\f "g", #h $i$ ~ ^\t=1+1',
    "format": "{0} %s %(x)s ${x} {task.description} \\N{BULLET}",
}
