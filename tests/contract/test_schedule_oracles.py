"""Spans and peaks of schedules for 2 to 4 ranks, held against tables that another simulator made.

`tests/oracles/schedules.csv`: a chunk's F = I = W = 1, B = 2, messages free, one batch. `bubble` is
the longest over ranks of (last end - first start), less what each computes.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from backend.pipeline.actions import Action, Backward, Compute, Forward, Recv, Send
from backend.pipeline.held import in_flight, most
from backend.pipeline.kinds import Kind
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.pipeline.schedules.interleaved import INTERLEAVED
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from backend.prediction.uniform import UniformDurations, cost_seconds, uniform_shape

FILE = Path(__file__).parents[1] / "oracles/schedules.csv"
OURS = {
    "dualpipev-atomic3": "dualpipe-v",
    "dualpipev-serial": "dualpipe-v",
    "interleaved-1f1b": "interleaved",
    "interleaved-zb": "interleaved-zb",
    "looped-bfs": "looped-bfs",
    "v-half-plain": "v-half",
    "v-min-plain": "v-min",
    "zb-v": "zb-v",
}
"""The names in the table. In `dualpipev-atomic3` a forward and the backward after it are one action
of three units, which no schedule of the catalog has (`paired`)."""
ROWS = list(csv.DictReader(FILE.open()))


def breadth_first(
    pipeline_rank: int, size: int, chunks: int, microbatches: int
) -> Iterator[tuple[Kind, int, int]]:
    """All of a chunk, then all of the next, and back: of the table, not of the catalog."""
    every = range(microbatches)
    yield from ((Kind.FORWARD, chunk, k) for chunk in range(chunks) for k in every)
    yield from ((Kind.BACKWARD, chunk, k) for chunk in reversed(range(chunks)) for k in every)


def paired(program: Program) -> Program:
    """Each forward with the whole backward right after it as one action: it begins when the
    messages of both are there, and sends those of both at its end. Only the first of these pairs
    of the last rank comes in turn."""
    ranks = [_paired(own, rank + 1 < program.num_ranks) for rank, own in enumerate(program.ranks)]
    return Program.of(program.schedule, program.shape, ranks)


def _paired(actions: Sequence[Action], from_first: bool) -> list[Action]:
    found, pairs = list(actions), 0
    for first, second in pairwise(each for each in actions if isinstance(each, Compute)):
        if isinstance(first, Forward) and isinstance(second, Backward):
            pairs += 1
            if pairs > 1 or from_first:
                _join(found, first, second)
    return found


def _join(actions: list[Action], first: Forward, second: Backward) -> None:
    """What lies between the two: messages that are received go before, those sent behind."""
    start, end = actions.index(first), actions.index(second)
    between = actions[start + 1 : end]
    before = [each for each in between if isinstance(each, Recv)]
    behind = [each for each in between if isinstance(each, Send)]
    actions[start : end + 1] = [*before, first, second, *behind]


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: "-".join(list(row.values())[:4]).replace(" ", "")
)
def test_the_simulator_gives_the_table(row: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    whole = replace(INTERLEAVED, name="looped-bfs", batch_order=breadth_first)
    monkeypatch.setitem(SCHEDULES, whole.name, whole)
    name = OURS[row["schedule"]]
    p, m, chunks = (int(row[each]) for each in ("positions", "microbatches", "chunks"))
    shape = uniform_shape(name, p, m, chunks)
    program = lower(SCHEDULES[name], shape)
    program = paired(program) if "atomic" in row["schedule"] else program
    assert verify(program) == ()
    timeline = simulate(program, UniformDurations(chunks, chunks, chunks, chunks=chunks))
    assert timeline.makespan == float(row["makespan"])
    ideal = m * 3 * chunks
    assert (ideal, cost_seconds(timeline) - ideal) == (int(row["ideal"]), float(row["bubble"]))
    held = most(program, in_flight(program.rows))
    assert held == list(map(int, row["peak_chunks_per_rank"].split()))


def test_the_table_is_read():
    assert {row["schedule"] for row in ROWS} == set(OURS)
    assert len(ROWS) == 146


@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_zb_v_waits_for_two_of_each_microbatch_that_it_lacks(p: int):
    """2 max(0, 2p - 1 - m) of equal halves; found by simulation, on more cases than the table."""
    for m in range(1, 4 * p + 1):
        program = lower(SCHEDULES["zb-v"], uniform_shape("zb-v", p, m))
        cost = cost_seconds(simulate(program, UniformDurations(2, 2, 2, chunks=2)))
        assert cost - 6 * m == 2 * max(0, 2 * p - 1 - m)


@pytest.mark.parametrize(
    ("f", "i", "w"), [(1.0, 1.25, 0.75), (1.0, 1.5, 1.25), (1.0, 1.25, 2.0), (1.0, 1.0, 1.0)]
)
@pytest.mark.parametrize("p", [2, 3, 4])
def test_zb_v_of_unequal_halves(p: int, f: float, i: float, w: float):
    """The three cases of F <= I, with 4p microbatches."""
    if w <= f:
        bubble = 2 * (p - 1) * (i - w)
    elif w <= i:
        bubble = (p - 1) * max(2 * (i - w), i - f)
    else:
        bubble = (p - 1) * (i - f) + (p - 2) * (w - i)
    m = 4 * p
    program = lower(SCHEDULES["zb-v"], uniform_shape("zb-v", p, m))
    timeline = simulate(program, UniformDurations(2 * f, 2 * i, 2 * w, chunks=2))
    assert cost_seconds(timeline) - 2 * m * (f + i + w) == pytest.approx(bubble)


@pytest.mark.parametrize("p", [2, 3, 4, 5, 6, 8, 9])
def test_v_half_and_v_min_cost_and_hold_what_their_authors_say(p: int):
    """With 4p microbatches, F = I = W: V-Half p + 2 chunks (p + 1), V-Min about two thirds of p."""
    even, thirds = p % 2 == 0, p % 3 == 0
    wanted = {
        "v-half": (7 * p / 2 - 2 if even else 7 * (p - 1) / 2, p + 2 if even else p + 1),
        "v-min": (4 * p - 3 if thirds else 4 * p - 5, 2 * ((p + 1) // 3 + 1)),
    }
    for name, (bubble, held) in wanted.items():
        program = lower(SCHEDULES[name], uniform_shape(name, p, 4 * p))
        cost = cost_seconds(simulate(program, UniformDurations(2, 2, 2, chunks=2)))
        assert (cost - 6 * 4 * p, max(most(program, in_flight(program.rows)))) == (bubble, held)


@pytest.mark.parametrize(("name", "p", "growth"), [("v-min", 4, 19.2), ("v-half", 8, 0.0)])
def test_where_halves_differ_the_bubble_of_v_min_grows(name: str, p: int, growth: float):
    """F, I, W = 1, 1.2, 0.8: 1.2 more per microbatch under V-Min, nothing under V-Half."""
    bubbles = []
    for m in (4 * p, 8 * p):
        program = lower(SCHEDULES[name], uniform_shape(name, p, m))
        cost = cost_seconds(simulate(program, UniformDurations(2, 2.4, 1.6, chunks=2)))
        bubbles.append(cost - 6 * m)
    assert bubbles[1] - bubbles[0] == pytest.approx(growth, abs=1e-9)
    assert bool(SCHEDULES[name].warning) == (growth > 0)
