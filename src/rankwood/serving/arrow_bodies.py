"""Requests and answers in Arrow IPC, the stream and the file format.

A request is a table with a column per feature, found by name if the model has names, else by position; or with one
column of fixed-size lists that hold all features. A column `qid` tells queries. Null is a missing value, as is NaN.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from rankwood.data.tables import import_pyarrow
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, MissingPackageError, one_line
from rankwood.matrix import column_order
from rankwood.serving.batch import Batch, Limits, Refused, check_rows, number_queries
from rankwood.serving.served import Served

MAGIC = b"ARROW1\0\0"  # of the file format, in which a stream follows
QUERY = "qid"
MAX_BATCHES = 1000  # of a stream; empty ones would take time beyond all limits


def read_arrow(body: bytes, served: Served, limits: Limits) -> Batch:
    """What a body asks for; it is refused when it is not Arrow (400) or not of this model's features (422)."""
    try:
        pa = import_pyarrow("Arrow in requests")
    except MissingPackageError as error:
        raise Refused(415, f"this server takes JSON only: {error}") from None
    try:
        return _batch(pa, body, served, limits)
    except Refused:
        raise
    except (pa.ArrowException, OSError, ValueError, struct.error, OverflowError, IndexError) as error:
        raise Refused(400, f"the body is no Arrow stream or file: {one_line(error)}") from None


def write_arrow(served: Served, scores: FloatArray, *, as_file: bool) -> bytes:
    """The answer: a table of one column, `score`, in the order of the rows; the model is in the metadata."""
    import pyarrow as pa

    notes = {"rankwood.model": served.name, "rankwood.fingerprint": served.fingerprint}
    schema = pa.schema([("score", pa.float64())], metadata=notes)
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_file if as_file else pa.ipc.new_stream)(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(scores)], schema=schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _batch(pa: Any, body: bytes, served: Served, limits: Limits) -> Batch:
    schema, batches = _read(pa, body, limits)
    names, kinds = schema.names, schema.types  # lists that are made at every access
    queries = [number for number, name in enumerate(names) if _is_query(name, served)]
    if len(queries) > 1:
        raise Refused(422, f"two columns are called {QUERY}")
    for number in queries:
        if not _is_id(pa, kinds[number]):
            raise Refused(422, f"{QUERY} holds {one_line(str(kinds[number]))}: ids are texts or whole numbers")
    qid = [one for batch in batches for number in queries for one in batch.column(number).to_pylist()]
    if None in qid:
        raise Refused(422, f"{QUERY} of row {qid.index(None)} is null: every row needs a query id")
    features = [number for number in range(len(names)) if number not in queries]
    X = _features(pa, names, kinds, batches, features, served)
    return Batch(X, {"qid": number_queries(qid)} if queries else {})


def _read(pa: Any, body: bytes, limits: Limits) -> tuple[Any, list[Any]]:
    """Schema and batches, with no more memory than the body has: columns are of plain numbers, and not compressed."""
    content = pa.py_buffer(body)
    if body[:8] == MAGIC:
        content = content.slice(8)
    messages = iter(pa.ipc.MessageReader.open_stream(content))
    try:
        first = next(messages, None)
    except (pa.ArrowException, OSError):  # whose words are of lengths that were read from anything
        first = None
    if first is None or first.type != "schema":
        raise Refused(400, "the body is no Arrow stream or file: it does not begin with a schema")
    schema = pa.ipc.read_schema(first)
    for field in schema:
        is_taken = _is_number(pa, field.type) or _is_vector(pa, field.type)
        if not is_taken and not (field.name == QUERY and _is_id(pa, field.type)):
            hint = "lists must have a fixed size" if _is_list(pa, field.type) else "features must be numbers"
            raise Refused(422, f"column {one_line(field.name)!r} holds {one_line(str(field.type))}: {hint}")
    batches: list[Any] = []
    n_rows = 0
    for message in messages:
        if message.type != "record batch":
            raise Refused(422, f"a {one_line(message.type)} is not taken: send columns of plain numbers")
        if len(batches) == MAX_BATCHES:
            raise Refused(413, f"the stream has more than {MAX_BATCHES:,} batches: join them")
        if _is_compressed(memoryview(message.metadata)):
            raise Refused(415, "compressed Arrow buffers are not taken: write the stream without compression")
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        n_rows += batch.num_rows
        check_rows(n_rows, limits)
        batches.append(batch)
    return schema, batches


def _is_compressed(message: memoryview) -> bool:
    """Whether the metadata of a record batch, a flatbuffer, names a codec.

    pyarrow does not tell; it would make as much room as the sender says.
    """
    (root,) = struct.unpack_from("<i", message, 0)
    header = _field(message, root, 2)  # of Message: version, type of the header, header, ...
    if header is None:
        return False
    (offset,) = struct.unpack_from("<i", message, header)
    return _field(message, header + offset, 3) is not None  # of RecordBatch: length, nodes, buffers, compression


def _field(message: memoryview, table: int, number: int) -> int | None:
    """Place of a field of a flatbuffer's table; None when the table is without."""
    if table < 0:
        raise ValueError("damaged metadata")
    (back,) = struct.unpack_from("<i", message, table)
    if table - back < 0:
        raise ValueError("damaged metadata")
    (size,) = struct.unpack_from("<H", message, table - back)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", message, table - back + 4 + 2 * number)
    return table + offset if offset else None


def _is_number(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_null(kind))


def _is_vector(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_id(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind))


def _is_query(name: str, served: Served) -> bool:
    """Whether a column tells queries: a model may have a feature of that name."""
    return name == QUERY and QUERY not in (served.model.feature_names or ())


def _features(
    pa: Any, names: list[str], kinds: list[Any], batches: list[Any], columns: list[int], served: Served
) -> AnyArray:
    """The matrix of all batches, in float32 if all columns are, else in float64."""
    model = served.model
    if len(columns) == 1 and _is_vector(pa, kinds[columns[0]]):
        return _vectors(pa, batches, columns[0], kinds[columns[0]], served)
    for number in columns:
        if not _is_number(pa, kinds[number]):
            raise Refused(422, f"column {one_line(names[number])!r} holds {one_line(str(kinds[number]))}, not numbers")
    try:
        order = column_order([names[number] for number in columns], model.feature_names, "the table")
    except DataError as error:
        raise Refused(422, str(error)) from None
    if len(columns) < model.n_features or (len(columns) > model.n_features and not served.is_open):
        raise Refused(422, f"there are {len(columns)} columns, but the model has {model.n_features} features")
    taken = (columns if order is None else [columns[number] for number in order])[: model.n_features]
    dtype = np.float32 if all(kinds[number] == pa.float32() for number in taken) else np.float64
    X = np.empty((sum(batch.num_rows for batch in batches), model.n_features), dtype)
    first = 0
    for batch in batches:
        for feature, number in enumerate(taken):
            column = batch.column(number)
            is_null = column.type == pa.null()
            X[first : first + len(column), feature] = np.nan if is_null else column.to_numpy(zero_copy_only=False)
        first += batch.num_rows
    return X


def _vectors(pa: Any, batches: list[Any], column: int, kind: Any, served: Served) -> AnyArray:
    """The matrix of a column of fixed-size lists; a list that is null has no values at all."""
    width, needed = kind.list_size, served.model.n_features
    if width < needed or (width > needed and not served.is_open):
        raise Refused(422, f"the lists have {width} values, but the model has {needed} features")
    dtype = np.float32 if kind.value_type == pa.float32() else np.float64
    parts = [np.empty((0, needed), dtype)]
    for batch in batches:
        lists = batch.column(column)
        if lists.null_count:
            raise Refused(422, "a list of features is null: write nulls or NaN into the list")
        values = lists.flatten().to_numpy(zero_copy_only=False).astype(dtype, copy=False)
        parts.append(values.reshape(len(lists), width)[:, :needed])
    return np.concatenate(parts) if len(parts) != 2 else parts[1]
