"""Model files that are known but not read: what they are, and the call that writes one that is."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from typing import Any

# Packed files: how they begin, what they are packed with, and what unpacks their beginning.
PACKED: tuple[tuple[tuple[bytes, ...], str, Any], ...] = (
    ((b"\x1f\x8b",), "gzip", lambda: zlib.decompressobj(wbits=31)),
    ((b"x\x01", b"x^", b"x\x9c", b"x\xda"), "zlib", zlib.decompressobj),
    ((b"BZh",), "bzip2", bz2.BZ2Decompressor),
    ((b"\xfd7zXZ", b"]\x00\x00"), "xz", lzma.LZMADecompressor),
)
UNPACKED = 4096  # bytes to look at
PICKLE = re.compile(rb"\x80[\x02-\x05]|ccopy_?reg\n|\(?c(?:lightgbm|xgboost|catboost|sklearn|joblib|numpy|rankwood)")
# What a model that was unpickled writes, by the library that it is of.
EXPORTS = {
    b"lightgbm": "model.booster_.save_model('model.txt') (a Booster: model.save_model('model.txt'))",
    b"xgboost": "model.save_model('model.json')",
    b"catboost": "model.save_model('model.json', format='json')",
}
OTHERWISE = "rankwood.load_model(model).save('model.rw')"
LEARNER_BYTES = 136  # of the record that XGBoost's binary files begin with
OBJECTIVE = re.compile(rb"[a-z]+(:[a-z0-9_]+)?")

XGBOOST_BINARY = (
    "this is XGBoost's binary format, which XGBoost itself has given up: with pip install 'xgboost<3', "
    "xgboost.Booster(model_file='FILE').save_model('model.json') writes what is read"
)
XGBOOST_TEXT = (
    "this is XGBoost's dump for people, as text or drawing: Booster.save_model('model.json') writes the model, and "
    "Booster.dump_model('dump.json', dump_format='json') a dump that is read"
)
COREML = (
    "this is a CoreML model, which is not read: write it from the model it was made of, for instance with CatBoost's "
    "model.save_model('model.json', format='json') or XGBoost's model.save_model('model.json')"
)
PMML = "this is PMML, which is not read: import the model that it was made from"


def refusal(start: bytes) -> str | None:
    r"""What a file is that begins so, and how to write one that is read; None when that is not known.

    Examples
    --------
    >>> refusal(b"booster[0]:\n0:leaf=1\n")[:43]
    "this is XGBoost's dump for people, as text "
    """
    if is_coreml(start):
        return COREML
    if _is_xgboost_binary(start):
        return XGBOOST_BINARY
    text = start.lstrip()
    if text.startswith((b"booster[0]:", b"digraph {")) or re.match(rb"0:(\[.{1,500}\] yes=|leaf=)", text):
        return XGBOOST_TEXT
    if b"<PMML" in start[:1000]:
        return PMML
    if PICKLE.match(start):
        return _of_pickle(start)
    return _of_packed(start)


def is_coreml(start: bytes) -> bool:
    """Whether a file that begins so is CoreML's: as ONNX it begins with a version, but then comes no text."""
    if len(start) < 8 or start[0] != 0x08 or start[2] != 0x12:
        return False
    inside = 3
    while inside < 8 and start[inside] & 0x80:  # the length takes several bytes
        inside += 1
    return start[inside + 1 : inside + 2] == b"\n"


def _is_xgboost_binary(start: bytes) -> bool:
    if start.startswith((b"binf", b"bs64\t")):
        return True
    size = int.from_bytes(start[LEARNER_BYTES : LEARNER_BYTES + 8], "little")
    name = start[LEARNER_BYTES + 8 : LEARNER_BYTES + 8 + size]
    return 0 < size < 64 and len(name) == size and OBJECTIVE.fullmatch(name) is not None


def _of_pickle(start: bytes) -> str:
    library = next((name for name in EXPORTS if name in start), None)
    whose = "" if library is None else f" of {library.decode()}"
    return (
        f"this is a pickle{whose}, which could run any code when it is loaded: if you trust it, "
        f"model = joblib.load('FILE') (or pickle.load), then {EXPORTS.get(library or b'', OTHERWISE)}, and give that"
    )


def _of_packed(start: bytes) -> str | None:
    for begins, kind, unpacker in PACKED:
        if start.startswith(begins):
            try:
                inside = unpacker().decompress(start, UNPACKED)
            except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError):
                continue
            return _of_pickle(inside) if PICKLE.match(inside) else f"the file is packed with {kind}: unpack it first"
    return "the file is a zip archive: unpack it first" if start.startswith(b"PK\x03\x04") else None
