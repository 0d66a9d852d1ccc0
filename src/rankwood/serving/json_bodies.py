"""Requests and answers in JSON.

    {"rows": [[1.5, null], [2, 0]]}                           values in the order of the model's features
    {"rows": [{"bm25": 1.5, "clicks": null}, ...]}            values by name
    {"columns": {"bm25": [1.5, 2], "clicks": [null, 0]}}      values by name, feature after feature

and beside one of these `qid` or `group`, `top`, `dtype`.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from rankwood import _native
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import one_line
from rankwood.serving.batch import Batch, Limits, Refused, check_rows, number_queries
from rankwood.serving.served import Served

KEYS = ("rows", "columns", "qid", "group", "top", "dtype")
NUMBER_OR_NULL = {float, int, type(None)}
MAX_TOP = 2**31 - 1
STAND_IN = secrets.token_hex(16)  # of rows that were read already


def read_json(body: bytes, served: Served, limits: Limits) -> Batch:
    """What a body asks for; it is refused when it is not JSON (400) or asks for what the model cannot do (422)."""
    quickly = read_rows(body, served.model.n_features, limits)
    request, X = quickly or (parse(body, limits), None)
    if not isinstance(request, dict):
        raise Refused(422, f"the body must be an object with rows or columns, got {_shown(request)}")
    for key in request:
        if key not in KEYS:
            raise Refused(422, f"there is nothing called {one_line(key)!r} in a request: it may have {', '.join(KEYS)}")
    if ("rows" in request) == ("columns" in request):
        raise Refused(422, "a request has either rows or columns")
    if "columns" in request:
        X = _from_columns(request["columns"], served, limits)
    elif X is None:
        X = _from_rows(request["rows"], served, limits)
    return Batch(_as_dtype(X, request), _queries(request, len(X)), _top(request))


def write_json(served: Served, scores: FloatArray, order: list[list[int]] | None) -> bytes:
    """The answer; numbers have as many digits as it takes to read the same bits again."""
    answer = {"model": served.name, "fingerprint": served.fingerprint, "scores": scores.tolist()}
    if order is not None:
        answer["order"] = order
    return json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()


def read_rows(body: bytes, width: int, limits: Limits) -> tuple[dict[str, Any], AnyArray] | None:
    """The request and its matrix, if it has rows that are lists of `width` numbers or nulls; None for anything else.

    The lists are read by a kernel, without the interpreter lock and several times as fast as `parse`. A text that
    nobody can know stands in their place when the rest is parsed: if it comes out as `rows`, the lists were that.
    """
    found = _native.json_rows(body, width, limits.rows)
    if found is None:
        return None
    values, first, end = found
    try:
        request = parse(body[:first] + b'"' + STAND_IN.encode() + b'"' + body[end:], limits)
    except Refused:  # `parse` says why, of the whole body
        return None
    if not isinstance(request, dict) or request.get("rows") != STAND_IN:
        return None
    return request, values.reshape(-1, width)


def parse(body: bytes, limits: Limits) -> Any:
    """Value of a JSON text: UTF-8, no key twice, no NaN."""
    # Empty lists and objects take up twenty times as much memory as text, so they are counted first.
    if max(body.count(b"["), body.count(b"{")) > 4 * limits.rows + 1000:
        raise Refused(413, f"the body has many more lists or objects than the {limits.rows:,} rows it may have")
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8: byte {error.start} is {body[error.start]:#04x}") from None
    except RecursionError:
        raise Refused(400, "the JSON is nested too deeply: rows are lists of numbers, or objects") from None
    except Refused:
        raise
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {one_line(error)}") from None


def _no_constant(name: str) -> NoReturn:
    raise Refused(400, f"JSON has no {name}: write null for a missing value; infinities can be sent in Arrow")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Refused(400, f"the key {one_line(twice)!r} stands twice in an object")
    return found


def _from_rows(rows: Any, served: Served, limits: Limits) -> AnyArray:
    if not isinstance(rows, list):
        raise Refused(422, f"rows must be a list, got {_shown(rows)}")
    check_rows(len(rows), limits)
    kinds = set(map(type, rows))
    if not kinds:
        return np.empty((0, served.model.n_features))
    if kinds == {dict}:
        names = _names(served)
        expected = set(names)
        for number, row in enumerate(rows):
            if row.keys() != expected:
                _refuse_names(row, names, f"row {number}")
        rows = [[row[name] for name in names] for row in rows]
    elif kinds != {list}:
        odd = next(number for number, row in enumerate(rows) if type(row) is not type(rows[0]) or type(row) is not list)
        raise Refused(422, f"rows must be lists, or all objects: row {odd} is {_shown(rows[odd])}")
    needed = served.model.n_features
    width = max(needed, len(rows[0])) if served.is_open else needed
    wrong = next((number for number, row in enumerate(rows) if len(row) != width), None)
    if wrong is not None:
        other = f"the model has {needed} features" if width == needed else f"row 0 has {width}"
        raise Refused(422, f"row {wrong} has {len(rows[wrong])} values, but {other}")
    matrix = _as_matrix(rows, lambda r, f: f"row {r}, {_feature(served, f)}")
    return matrix[:, :needed]


def _from_columns(columns: Any, served: Served, limits: Limits) -> AnyArray:
    if not isinstance(columns, dict):
        raise Refused(422, f"columns must be an object of lists by name of the feature, got {_shown(columns)}")
    names = _names(served)
    if columns.keys() != set(names):
        _refuse_names(columns, names, "columns")
    lists = [columns[name] for name in names]
    for name, column in zip(names, lists, strict=True):
        if not isinstance(column, list):
            raise Refused(422, f"column {one_line(name)!r} must be a list, got {_shown(column)}")
        if len(column) != len(lists[0]):
            raise Refused(422, f"column {one_line(name)!r} has {len(column)} values, the first one {len(lists[0])}")
    n_rows = len(lists[0]) if lists else 0
    check_rows(n_rows, limits)
    by_feature = _as_matrix(lists, lambda f, r: f"row {r}, {_feature(served, f)}")
    X: AnyArray = by_feature.reshape(len(lists), n_rows).T
    return X


def _as_matrix(lists: list[list[Any]], place: Any) -> AnyArray:
    """Lists of equal length as a matrix; `place(i, j)` names an entry."""
    if not set(map(type, chain.from_iterable(lists))) <= NUMBER_OR_NULL:
        i, j = next((i, j) for i, one in enumerate(lists) for j, v in enumerate(one) if type(v) not in NUMBER_OR_NULL)
        raise Refused(422, f"{place(i, j)} must be a number or null, got {_shown(lists[i][j])}")
    try:
        matrix = np.array(lists, dtype=np.float64)  # null becomes NaN
    except OverflowError:
        raise Refused(422, "a whole number is beyond the range of a double") from None
    if np.isinf(matrix).any():
        i, j = np.argwhere(np.isinf(matrix))[0]
        raise Refused(422, f"{place(i, j)} is beyond the range of a double; infinities can be sent in Arrow")
    return matrix


def _names(served: Served) -> tuple[str, ...]:
    if served.model.feature_names is None:
        raise Refused(422, f"the features of model {served.name} have no names: send rows as lists, in their order")
    return served.model.feature_names


def _refuse_names(given: Any, names: tuple[str, ...], where: str) -> NoReturn:
    missing = next((name for name in names if name not in given), None)
    if missing is not None:
        raise Refused(422, f"{where}: the feature {one_line(missing)!r} is not there; write null if it is missing")
    unknown = next(name for name in given if name not in names)
    raise Refused(422, f"{where}: the model has no feature {one_line(unknown)!r}")


def _feature(served: Served, number: int) -> str:
    names = served.model.feature_names
    return f"feature {number}" if names is None or number >= len(names) else f"feature {one_line(names[number])!r}"


def _as_dtype(X: AnyArray, request: dict[str, Any]) -> AnyArray:
    dtype = request.get("dtype", "float64")
    if dtype not in ("float32", "float64"):
        raise Refused(422, f"dtype must be 'float32' or 'float64', got {_shown(dtype)}")
    with np.errstate(over="ignore"):  # beyond float32 is infinity, which trees order correctly
        return X.astype(dtype, copy=False)


def _queries(request: dict[str, Any], n_rows: int) -> dict[str, Any]:
    qid, group = request.get("qid"), request.get("group")
    if qid is not None and group is not None:
        raise Refused(422, "give qid (one id per row) or group (rows per query), not both")
    if qid is not None:
        if not isinstance(qid, list) or len(qid) != n_rows or set(map(type, qid)) not in ({int}, {str}, set()):
            raise Refused(422, f"qid must be a list of {n_rows} whole numbers, or of as many texts: one per row")
        return {"qid": number_queries(qid)}
    if group is not None:
        if not isinstance(group, list) or not set(map(type, group)) <= {int} or min(group, default=1) < 1:
            raise Refused(422, "group must be a list of whole numbers of at least 1, the rows of each query")
        if sum(group) != n_rows:
            raise Refused(422, f"group adds up to {one_line(sum(group))} rows, but there are {n_rows}")
        return {"group": np.array(group, dtype=np.int64)}
    return {}


def _top(request: dict[str, Any]) -> int | None:
    top = request.get("top")
    if top is not None and (type(top) is not int or not 1 <= top <= MAX_TOP):
        raise Refused(422, f"top must be a whole number of at least 1, got {_shown(top)}")
    return top


def _shown(value: Any) -> str:
    """A JSON value in words, cut short."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(one_line(value)) if isinstance(value, str) else one_line(value)
