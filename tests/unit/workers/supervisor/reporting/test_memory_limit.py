"""A report that expands is refused before it fills the memory."""

import resource

import pyarrow as pa
import pytest

from backend.errors import InvalidInput
from backend.pipeline.actions import Forward
from backend.pipeline.columns import SCHEMA, decode, encode
from backend.pipeline.timeline import Span, Timeline
from workers.supervisor.reporting.memory_limit import ReportExceedsMemory, bounded


def bomb(batches: int, rows: int = 1 << 20) -> bytes:
    """Spans that take 45 bytes each, 45 MiB in a batch, and next to nothing in the file."""
    kind = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), rows), ["F"])
    group = pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()), pa.array([], pa.string()))
    texts = {"kind": kind, "group": group}
    columns = [
        texts[field.name] if field.name in texts else pa.repeat(pa.scalar(0, field.type), rows)
        for field in SCHEMA
    ]
    batch = pa.record_batch(columns, schema=SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, SCHEMA, options=options) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def test_spans_that_expand_to_a_gigabyte_are_refused():
    data = bomb(batches=40)
    assert len(data) < 4 << 20
    with pytest.raises((InvalidInput, ReportExceedsMemory)), bounded():
        decode(data)


def test_what_runs_out_of_memory_is_said_and_the_bound_is_lifted():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(ReportExceedsMemory, match=r"64\.0 MiB"), bounded(64 << 20):
        bytearray(128 << 20)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    bytearray(128 << 20)


def test_an_honest_report_is_read():
    spans = [Span(0, index, Forward(0, index), 0.0, 1.0) for index in range(1000)]
    with bounded():
        assert decode(encode(Timeline.of(spans))).spans == tuple(spans)
