import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.actions import AllReduce, Flow, Forward, Message, Recv, Send, Step
from backend.pipeline.columns import SCHEMA, decode, encode
from backend.pipeline.notation import format_action
from backend.pipeline.timeline import Span, Timeline

MESSAGE = Message(Flow.GRADIENT, 1, 7)
SPANS = (
    Span(0, 0, Forward(0, 7, 2), 0.125, 0.25),
    Span(0, 1, Send(MESSAGE, 3), 0.25, 0.26),
    Span(1, 0, Recv(MESSAGE, 0), 0.0, 0.3),
    Span(1, 1, AllReduce(1, (1, 2), 3), 0.3, 1e9),
    Span(1, 2, Step(1, 3), 1e9, 1e9),
    Span(1, 3, Step(1, 3), 1e9, 1e9),
)

times = st.floats(allow_nan=False, allow_infinity=False)
spans = st.builds(
    Span,
    rank=st.integers(0, 2**31 - 1),
    index=st.integers(0, 2**31 - 1),
    action=st.builds(Forward, *[st.integers(0, 99)] * 3),
    start=times,
    end=times,
)


def test_spans_come_back_in_order_and_to_the_last_bit():
    assert decode(encode(Timeline.of(SPANS))).spans == SPANS


def test_no_spans_are_spans_too():
    assert decode(encode(Timeline.of(()))).spans == ()


@given(st.lists(spans))
def test_any_spans_come_back(some):
    assert decode(encode(Timeline.of(some))).spans == tuple(some)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_times_that_are_not_finite_are_refused(odd: float):
    with pytest.raises(InvalidInput, match="not finite"):
        decode(encode(Timeline.of([Span(0, 0, Forward(0, 0), 0.0, odd)])))


def test_repeated_actions_are_stored_once():
    once = len(encode(Timeline.of([Span(0, 0, Forward(0, 0), 0.0, 0.0)])))
    many = encode(Timeline.of([Span(0, i, Forward(0, 0), 0.0, 0.0) for i in range(10_000)]))
    assert len(many) < once + 4 * 10_000


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7, 0.99])
def test_a_cut_off_file_is_refused_and_not_taken_for_a_shorter_one(keep):
    data = encode(Timeline.of(SPANS))
    with pytest.raises(InvalidInput, match="are not spans"):
        decode(data[: int(keep * len(data))])


def test_other_bytes_and_other_columns_are_refused():
    with pytest.raises(InvalidInput, match="these 7 bytes are not spans"):
        decode(b"garbage")
    with pytest.raises(InvalidInput, match="columns x are not spans"):
        decode(arrow(pa.table({"x": [1]})))


def test_another_version_of_the_format_is_refused():
    table = pa.table([[] for _ in SCHEMA], schema=SCHEMA)
    assert decode(arrow(table)).spans == ()
    with pytest.raises(InvalidInput, match="not spans of this version"):
        decode(arrow(table.replace_schema_metadata({"stageflow": "spans 3"})))


def test_spans_of_the_first_format_are_read():
    """As ranks wrote them before: actions as text."""
    texts = pa.array([format_action(span.action) for span in SPANS]).dictionary_encode()
    columns = {
        "rank": pa.array([span.rank for span in SPANS], pa.int32()),
        "index": pa.array([span.index for span in SPANS], pa.int32()),
        "action": texts,
        "start": pa.array([span.start for span in SPANS]),
        "end": pa.array([span.end for span in SPANS]),
    }
    first = pa.table(columns).replace_schema_metadata({"stageflow": "spans 1"})
    assert decode(arrow(first)).spans == SPANS


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kind", "X", "actions that nobody knows"),
        ("group", "4,x", "actions that nobody knows"),
        ("stage", -1, "no stage"),
        ("microbatch", -1, "no microbatch"),
        ("rank", -2, "below 0"),
        ("version", None, "1 empty cell"),
    ],
)
def test_columns_that_no_timeline_has_are_refused(name, value, message):
    one = Timeline.of([SPANS[0]])
    table = pa.ipc.open_file(encode(one)).read_all()
    place = table.column_names.index(name)
    field = SCHEMA.field(name)
    column = pa.array([value], getattr(field.type, "value_type", field.type))
    if name in ("kind", "group"):
        column = column.cast(pa.string()).dictionary_encode().cast(field.type)
    with pytest.raises(InvalidInput, match=message):
        decode(arrow(table.set_column(place, field, column)))


def arrow(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_spans_are_encoded_without_pandas():
    """Each rank does so, and importing it takes half a second."""
    code = (
        "import sys; from backend.pipeline.columns import encode; "
        "from backend.pipeline.actions import AllReduce; "
        "from backend.pipeline.timeline import Span, Timeline; "
        "encode(Timeline.of([Span(1, 1, AllReduce(1, (1, 2), 3), 0.3, 1.0)])); "
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
