import json
from collections import Counter
from itertools import pairwise

import pytest

from backend.errors import InvalidInput
from backend.pipeline.actions import Recv, Send
from backend.pipeline.exchange.chrome_trace import read_trace, write_trace
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.prediction.uniform import UniformDurations


def timeline(name, shape):
    return simulate(lower(schedule(name), shape), UniformDurations(0.25, 0.5, 0.125, 0.0625))


@pytest.mark.parametrize("name", SCHEDULES)
def test_timelines_come_back(name):
    shape = Shape((2, 1, 1), 24, 12, recompute=True)
    spans = timeline(name, shape).spans
    back = read_trace(write_trace(timeline(name, shape), shape)).spans
    assert [(s.rank, s.index, s.action) for s in back] == [
        (s.rank, s.index, s.action) for s in spans
    ]
    assert [s.start for s in back] == pytest.approx([s.start for s in spans], abs=1e-9)
    assert [s.end for s in back] == pytest.approx([s.end for s in spans], abs=1e-9)


def test_events_are_those_of_the_format():
    shown = timeline("1f1b-flush", Shape((1, 1), 2, 2))
    events = json.loads(write_trace(shown))["traceEvents"]
    assert Counter(event["ph"] for event in events) == {
        "M": 16,
        "X": len(shown.spans),
        "s": sum(isinstance(s.action, Send) for s in shown.spans),
        "f": sum(isinstance(s.action, Recv) for s in shown.spans),
    }
    first = next(event for event in events if event["ph"] == "X")
    assert (first["name"], first["ts"], first["dur"]) == ("forward 0.0", 0.0, 250_000.0)
    starts, ends = ({e["id"] for e in events if e["ph"] == phase} for phase in "sf")
    assert starts == ends


def test_devices_and_ranks_are_listed_in_their_order():
    events = json.loads(write_trace(timeline("pipedream", Shape((1, 1, 1), 8))))["traceEvents"]
    order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
    assert order == {0: 0, 1: 1, 2: 2}
    places = [e["tid"] for e in events if e["name"] == "thread_sort_index"]
    assert sorted(places) == sorted(e["tid"] for e in events if e["name"] == "thread_name")


def test_no_thread_has_two_things_at_once():
    """Perfetto nests slices that overlap; sends are on threads of their own for that."""
    events = json.loads(write_trace(timeline("pipedream", Shape((2, 1), 8))))["traceEvents"]
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for own in threads.values():
        own.sort(key=lambda event: (event["ts"], event["dur"]))
        for before, after in pairwise(own):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-6


def test_pipelines_share_the_process_of_their_device():
    shape = Shape((1, 1), 8, 2, num_pipelines=2)
    events = json.loads(write_trace(timeline("afp", shape), shape))["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "args": {"name": "x"}}]}'],
)
def test_other_traces_are_refused(text):
    with pytest.raises(InvalidInput):
        read_trace(text)


def test_an_action_that_is_none_is_refused():
    event = {"ph": "X", "args": {"action": "0Q0", "rank": 0, "index": 0}}
    with pytest.raises(InvalidInput, match="'0Q0' is not an action"):
        read_trace(json.dumps({"traceEvents": [event]}))


@pytest.mark.parametrize(("rank", "index"), [(2**63, 0), (10**9, 0), (-1, 0), (0, 2**63), (0, -1)])
def test_a_place_that_no_program_has_is_refused(rank, index):
    event = {"ph": "X", "args": {"action": "0F0@0", "rank": rank, "index": index}}
    with pytest.raises(InvalidInput, match="is not of Stageflow"):
        read_trace(json.dumps({"traceEvents": [event]}))
