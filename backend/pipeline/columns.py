"""Spans as compressed Arrow columns: how ranks hand them over and the database keeps them."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from backend.errors import InvalidInput
from backend.pipeline.notation import format_action, parse_action
from backend.pipeline.timeline import Span

SCHEMA = pa.schema(
    [
        ("rank", pa.int32()),
        ("index", pa.int32()),
        ("action", pa.dictionary(pa.int32(), pa.string())),
        ("start", pa.float64()),
        ("end", pa.float64()),
    ],
    metadata={"stageflow": "spans 1"},
)
"""`action` is the text of backend.pipeline.notation; `start` and `end` are seconds."""


def encode(spans: Sequence[Span]) -> bytes:
    """The spans as one Arrow file in memory (zstd), in the order given; `decode` reads it."""
    texts = pa.array([format_action(span.action) for span in spans], pa.string())
    batch = pa.record_batch(
        [
            pa.array([span.rank for span in spans], pa.int32()),
            pa.array([span.index for span in spans], pa.int32()),
            texts.dictionary_encode(),
            pa.array([span.start for span in spans], pa.float64()),
            pa.array([span.end for span in spans], pa.float64()),
        ],
        schema=SCHEMA,
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, SCHEMA, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode(data: bytes) -> tuple[Span, ...]:
    """The spans that `encode` was given; raises `InvalidInput` on other or cut-off bytes."""
    try:
        table = pa.ipc.open_file(data).read_all()
    except (pa.ArrowException, OSError) as fault:
        raise InvalidInput(f"these {len(data)} bytes are no spans: {fault}") from None
    if not table.schema.equals(SCHEMA, check_metadata=True):
        raise InvalidInput(f"columns {', '.join(table.column_names)} are no spans of this version")
    return tuple(span for batch in table.to_batches() for span in _spans(batch))


def _spans(batch: pa.RecordBatch) -> Iterator[Span]:
    texts = batch.column("action")
    actions = [parse_action(text) for text in texts.dictionary.to_pylist()]
    yield from (
        Span(rank, index, actions[code], start, end)
        for rank, index, code, start, end in zip(
            batch.column("rank").to_pylist(),
            batch.column("index").to_pylist(),
            texts.indices.to_pylist(),
            batch.column("start").to_pylist(),
            batch.column("end").to_pylist(),
            strict=True,
        )
    )
