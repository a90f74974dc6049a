"""A rank's lines: what is written is read, and everything else is log text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.events import (
    LAST_SECOND,
    MAX_NAME,
    PREFIX,
    Artifact,
    Chosen,
    Event,
    Finished,
    Heartbeat,
    Metrics,
    ProfileReady,
    Progress,
    RankError,
    Saved,
    Spans,
    Started,
    read_line,
    write_line,
)

ranks = st.integers(0, 1000)
texts = st.text()
names = st.text(max_size=MAX_NAME)
counts = st.integers(0, 2**31 - 1)
floats, moments = st.floats(-1e300, 1e300), st.floats(0, LAST_SECOND)
triples = st.lists(st.tuples(counts, floats, moments), max_size=5)
events = st.one_of(
    st.builds(Started, rank=ranks),
    st.builds(Heartbeat, rank=ranks, done=st.none() | ranks),
    st.builds(Progress, phase=names, done=ranks, total=ranks),
    triples.map(lambda rows: Metrics("loss", *(tuple(column) for column in _columns(rows)))),
    st.builds(Spans, rank=ranks, segment=ranks, path=texts, num_spans=ranks),
    st.builds(ProfileReady, path=texts),
    st.builds(Artifact, name=names, path=texts),
    st.builds(Saved, ranks, epoch=ranks, samples=ranks, step=ranks, path=texts, num_files=ranks),
    st.builds(Chosen, rank=ranks, epoch=ranks, num_microbatches=ranks),
    st.builds(RankError, rank=ranks, kind=names, message=texts, advice=texts, detail=texts),
    st.builds(Finished, rank=ranks, epochs=ranks),
)


def _columns(rows):
    return zip(*rows, strict=True) if rows else ((), (), ())


@given(events)
def test_what_is_written_is_read(event: Event):
    line = write_line(event)
    assert line.startswith(PREFIX)
    assert "\n" not in line
    assert read_line(line) == event


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Epoch 3",
        '{"loss": 1}',
        PREFIX,
        PREFIX + '"unheard-of"}',
        PREFIX + '"started"}',
        PREFIX + '"clock","rank":0,"segment":0,"seconds":Infinity,"error":NaN}',
        PREFIX + '"clock","rank":0,"segment":0,"seconds":1e301,"error":0}',
        PREFIX + '"started","rank":2147483648}',
        PREFIX + '"progress","phase":"train","done":-1,"total":1}',
        PREFIX + '"metrics","name":"loss","steps":[1],"values":[1],"times":[1e12]}',
        PREFIX + '"metrics","name":"loss","steps":[1,2],"values":[1],"times":[1]}',
        PREFIX + '"artifact","name":"' + "a" * 201 + '","path":"a"}',
    ],
)
def test_everything_else_is_log_text(line: str):
    assert read_line(line) is None
