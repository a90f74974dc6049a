"""A rank's lines: what is written is read, and everything else is log text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.events import (
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
floats = st.floats(allow_nan=False, allow_infinity=False)
triples = st.lists(st.tuples(st.integers(), floats, floats), max_size=5)
events = st.one_of(
    st.builds(Started, rank=ranks),
    st.builds(Heartbeat, rank=ranks, done=st.none() | ranks),
    st.builds(Progress, phase=texts, done=ranks, total=ranks),
    triples.map(lambda rows: Metrics("loss", *(tuple(column) for column in _columns(rows)))),
    st.builds(Spans, rank=ranks, segment=ranks, path=texts, num_spans=ranks),
    st.builds(ProfileReady, path=texts),
    st.builds(Artifact, name=texts, path=texts),
    st.builds(Saved, ranks, epoch=ranks, samples=ranks, step=ranks, path=texts, num_files=ranks),
    st.builds(Chosen, rank=ranks, epoch=ranks, num_microbatches=ranks),
    st.builds(RankError, rank=ranks, kind=texts, message=texts, advice=texts, detail=texts),
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
    ["", "Epoch 3", '{"loss": 1}', PREFIX, PREFIX + '"unheard-of"}', PREFIX + '"started"}'],
)
def test_everything_else_is_log_text(line: str):
    assert read_line(line) is None
