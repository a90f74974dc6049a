"""Timelines as compressed Arrow columns: how ranks hand them over and the database keeps them."""

from typing import Any

import numpy as np
import pyarrow as pa

from backend.errors import InvalidInput
from backend.pipeline.kinds import FACTS, Bools, Floats, Ints, Is, Kind
from backend.pipeline.notation import parse_action
from backend.pipeline.rows import Rows
from backend.pipeline.timeline import Timeline
from backend.units import count_text

SCHEMA = pa.schema(
    [
        ("rank", pa.int32()),
        ("index", pa.int32()),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("stage", pa.int32()),
        ("microbatch", pa.int32()),
        ("version", pa.int32()),
        ("peer", pa.int32()),
        ("group", pa.dictionary(pa.int32(), pa.string())),
        ("start", pa.float64()),
        ("end", pa.float64()),
    ],
    metadata={"stageflow": "spans 2"},
)
"""`kind` is the letter of backend.pipeline.notation, of a message with that of its flow (">a");
`group` the ranks of a collective ("4,5"), null for other actions; what an action does not have
is -1; `start` and `end` are seconds."""
_FIRST = pa.schema(
    [
        ("rank", pa.int32()),
        ("index", pa.int32()),
        ("action", pa.dictionary(pa.int32(), pa.string())),
        ("start", pa.float64()),
        ("end", pa.float64()),
    ],
    metadata={"stageflow": "spans 1"},
)
"""The format of before: `action` is the text of backend.pipeline.notation."""


def _letters(kind: Kind) -> str:
    facts = FACTS[kind]
    return facts.letter + (facts.flow[0] if Is.MESSAGE[kind] and facts.flow else "")


_LETTERS = [_letters(kind) for kind in Kind]


def encode(timeline: Timeline) -> bytes:
    """The spans as one Arrow file in memory (zstd), in their order; `decode` reads it."""
    rows = timeline.rows
    collective = rows.are(Is.COLLECTIVE)
    groups = _texts([",".join(map(str, group)) for group in rows.groups])
    places = _array(np.where(collective, rows.peer, 0), pa.int32(), collective)
    numbers = {
        "rank": timeline.rank,
        "index": timeline.index,
        "stage": rows.stage,
        "microbatch": rows.microbatch,
        "version": rows.version,
        "peer": np.where(collective, -1, rows.peer),
    }
    letters = _texts(_LETTERS)
    columns = {name: _array(column, pa.int32()) for name, column in numbers.items()}
    columns["kind"] = pa.DictionaryArray.from_arrays(_array(rows.kind, pa.int8()), letters)
    columns["group"] = pa.DictionaryArray.from_arrays(places, groups)
    for name, column in (("start", timeline.start), ("end", timeline.end)):
        columns[name] = _array(column, pa.float64())
    batch = pa.record_batch([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, SCHEMA, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _array(column: Ints | Floats, kind: pa.DataType, has_value: Bools | None = None) -> pa.Array:
    """The numbers as they lie, null where they have no value. `pa.array` would import pandas, which
    takes each rank half a second."""
    numbers = np.ascontiguousarray(column, kind.to_pandas_dtype())
    known = None if has_value is None else _bits(has_value)
    return pa.Array.from_buffers(kind, len(numbers), [known, pa.py_buffer(numbers)])


def _texts(texts: list[str]) -> pa.Array:
    each = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, each)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(each))]
    return pa.Array.from_buffers(pa.string(), len(each), buffers)


def _mask(mask: Bools) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def _bits(mask: Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def decode(data: bytes) -> Timeline:
    """The spans that `encode` was given, and those that it was given before format 2; raises
    `InvalidInput` on other or cut-off bytes."""
    try:
        table = pa.ipc.open_file(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as fault:
        raise InvalidInput(f"these {len(data)} bytes are not spans: {fault}") from None
    if table.schema.equals(SCHEMA, check_metadata=True):
        rows = _rows
    elif table.schema.equals(_FIRST, check_metadata=True):
        rows = _rows_of_text
    else:
        raise InvalidInput(f"columns {', '.join(table.column_names)} are not spans of this version")
    parts = [_timeline(batch, rows(batch)) for batch in table.to_batches()]
    return Timeline.joined(parts) if len(parts) != 1 else parts[0]


def _timeline(batch: pa.RecordBatch, rows: Rows) -> Timeline:
    rank, index = _numbers(batch, "rank"), _numbers(batch, "index")
    if (rank < 0).any() or (index < 0).any():
        raise InvalidInput("these spans have ranks or indices below 0")
    start, end = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("start", "end"))
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        raise InvalidInput("these spans have times that are not finite")
    return Timeline(rank, index, rows, start, end)


def _numbers(batch: pa.RecordBatch, name: str) -> Ints:
    column = batch.column(name)
    if column.null_count:
        raise InvalidInput(
            f"these spans have {count_text(column.null_count, 'empty cell')} in {name}"
        )
    return np.asarray(column.to_numpy().astype(np.int64))


def _rows(batch: pa.RecordBatch) -> Rows:
    kinds, groups = batch.column("kind"), batch.column("group")
    try:
        codes = [_LETTERS.index(letter) for letter in kinds.dictionary.to_pylist()]
        members = [tuple(map(int, text.split(","))) for text in groups.dictionary.to_pylist()]
    except (ValueError, AttributeError):
        raise InvalidInput("these spans are of actions that nobody knows") from None
    kind = _picked(kinds, np.array(codes, np.int64))
    collective = Is.COLLECTIVE[kind]
    peer = _numbers(batch, "peer")
    peer[collective] = _picked(groups.filter(_mask(collective)), np.arange(len(members)))
    columns = {name: _numbers(batch, name) for name in ("stage", "microbatch", "version")}
    rows = Rows(kind, **columns, peer=peer, groups=tuple(members))
    asked: dict[str, Bools] = {
        "stage": np.ones(len(kind), np.bool_),
        "microbatch": rows.are(Is.OF_MICROBATCH),
        "version": rows.are(Is.VERSIONED),
        "peer": rows.are(Is.MESSAGE),
    }
    for name, mask in asked.items():
        if (getattr(rows, name)[mask] < 0).any():
            raise InvalidInput(f"these spans have no {name} where they need one")
    return rows


def _rows_of_text(batch: pa.RecordBatch) -> Rows:
    texts = batch.column("action")
    rows = Rows.of(parse_action(text) for text in texts.dictionary.to_pylist())
    return rows.at(_picked(texts, np.arange(len(rows))))


def _picked(column: Any, values: Ints) -> Ints:
    """The value of each cell of a dictionary column."""
    if column.null_count:
        raise InvalidInput(f"these spans have {count_text(column.null_count, 'empty cell')}")
    return np.asarray(values[column.indices.to_numpy()])
