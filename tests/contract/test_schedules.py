"""What every member of the schedule catalog owes its readers, on a grid of shapes."""

from collections import Counter
from dataclasses import replace
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.actions import (
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Step,
)
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.text import format_shape
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule, training_schedules
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from tests.oracles.held import in_flight, live_versions

STRAIGHT = [
    Shape((1,), 4, 2),
    Shape((1, 1), 8, 4),
    Shape((1, 1, 1, 1), 24, 12),
    Shape((1, 1, 1, 1), 2, 1),
    Shape((4,), 8, 4),
    Shape((4,), 8, 2),
    Shape((2, 1), 12, 4),
    Shape((1, 2), 12, 3),
    Shape((3, 1, 2), 24, 6),
    Shape((1, 4, 1), 24, 8),
    Shape((2, 3, 1, 2), 36, 12),
]
SHAPES = [
    *STRAIGHT,
    *(replace(shape, recompute=True) for shape in STRAIGHT[1::3]),
    *(replace(shape, advance=advance) for shape in STRAIGHT[2::4] for advance in (0, 3)),
    *(replace(shape, run_ahead=ahead) for shape in STRAIGHT[1::3] for ahead in (1, 2)),
    Shape((3, 1, 2), 48, 24, run_ahead=1),
    Shape((1, 1, 1), 24, 4, num_pipelines=3),
    Shape((2, 1), 24, 4, num_pipelines=2, recompute=True),
    Shape((1, 1), 8, 4, chunks=2),
    Shape((1, 1, 1, 1), 16, 8, chunks=3),
    Shape((2, 2), 16, 8, chunks=2, recompute=True),
    Shape((1, 1), 16, 4, chunks=2, num_pipelines=2),
    *(
        replace(shape, placement=Placement.V)
        for shape in (
            Shape((1,), 4, 2, chunks=2),
            Shape((1, 1), 2, 1, chunks=2),
            Shape((1, 1, 1), 10, 5, chunks=2, recompute=True),
            Shape((1, 1, 1, 1), 32, 16, chunks=2),
            Shape((2, 2), 16, 8, chunks=2),
            Shape((1, 1), 16, 4, chunks=2, num_pipelines=2),
        )
    ),
]


def admitted(member, shape):
    try:
        member.check(shape)
    except InvalidInput:
        return False
    return True


GRID = pytest.mark.parametrize(
    ("member", "shape"),
    [(m, shape) for m in SCHEDULES.values() for shape in SHAPES if admitted(m, shape)],
    ids=lambda value: getattr(value, "name", "") or format_shape(value)[6:].replace(" ", ","),
)
MEMBERS = pytest.mark.parametrize("member", SCHEDULES.values(), ids=SCHEDULES)


class Unequal:
    """Durations in which no two things take the same time."""

    def compute(self, rank, action):
        return 1.0 + 0.1 * rank + (1.5 if isinstance(action, Backward) else 0.0)

    def transfer(self, message, source, to):
        return 0.25 + 0.01 * source

    def collective(self, action):
        return 0.125 * len(action.group) if isinstance(action, Average) else 0.5 * len(action.group)


@GRID
def test_the_program_is_sound_and_runs_to_its_end(member, shape):
    program = lower(member, shape)
    assert verify(program) == ()
    timeline = simulate(program, Unequal())
    assert [(s.rank, s.index, s.action) for s in timeline.spans] == [
        (rank, index, action)
        for rank, actions in enumerate(program.ranks)
        for index, action in enumerate(actions)
    ]


@GRID
def test_every_microbatch_passes_every_stage_once_each_way(member, shape):
    program = lower(member, shape)
    forwards: Counter[tuple[int, int]] = Counter()
    inputs: Counter[tuple[int, int]] = Counter()
    weights: Counter[tuple[int, int]] = Counter()
    for action in (action for actions in program.ranks for action in actions):
        if isinstance(action, Forward):
            forwards[action.stage, action.microbatch] += 1
        if isinstance(action, Backward | BackwardInput):
            inputs[action.stage, action.microbatch] += 1
        if isinstance(action, Backward | BackwardWeight):
            weights[action.stage, action.microbatch] += 1
    once = Counter(
        {(s, m): 1 for s in range(shape.num_stages) for m in range(shape.num_microbatches)}
    )
    assert forwards == once
    assert inputs == weights == (once if member.trains else Counter())


@GRID
def test_a_rank_holds_what_the_schedule_promises_and_no_less(member, shape):
    program = lower(member, shape)
    for coordinates in shape.coordinates:
        actions = program.ranks[coordinates.rank]
        assert max(in_flight(actions)) == member.in_flight(coordinates)
        bound = member.live(coordinates)
        most = max(max(live_versions(actions, stage)) for stage in coordinates.stages)
        assert most <= bound
        exact = member.name != "pipedream-vertical-sync" or set(shape.replicas) == {1}
        if exact and len(coordinates.microbatches) >= 2 * bound:
            assert most == bound


@GRID
def test_updates_apply_every_microbatch_of_a_training_schedule_in_order(member, shape):
    for coordinates in shape.coordinates:
        applied = tuple(
            microbatch for update in member.updates(coordinates) for microbatch in update
        )
        assert applied == (coordinates.microbatches if member.trains else ())


@MEMBERS
@settings(max_examples=25)
@given(
    replicas=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    batches=st.integers(1, 3),
    share=st.sampled_from([1, 2]),
)
def test_any_mix_of_replicas_runs(member, replicas, batches, share):
    batch = lcm(*replicas)
    if member.name == "2bw":
        batch *= 4 * len(replicas)
    shape = Shape(tuple(replicas), 2 * batch * batches, share * batch, recompute=batches == 2)
    assert verify(lower(member, shape)) == ()


@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 8), (4, 4), (4, 3), (8, 32)])
def test_straight_pipelines_hold_what_the_papers_say(p, m):
    """The table of formulas: GPipe holds m; 1F1B min(m, p - s), PipeDream p - s versions too."""
    for coordinates in Shape((1,) * p, m, m).coordinates:
        depth = min(m, p - coordinates.pipeline_rank)
        assert schedule("gpipe").in_flight(coordinates) == m
        assert schedule("1f1b-flush").in_flight(coordinates) == depth
        assert (
            schedule("pipedream").in_flight(coordinates)
            == schedule("pipedream").live(coordinates)
            == depth
        )
        assert schedule("gpipe").live(coordinates) == schedule("1f1b-flush").live(coordinates) == 1


@pytest.mark.parametrize(
    ("replicas", "versions"),
    [
        ((2, 1), (2, 2, 1)),
        ((1, 2), (3, 1, 1)),
        ((3, 1, 2), (2, 2, 2, 3, 1, 1)),
        ((15, 1), (2,) * 15 + (1,)),
    ],
)
def test_replicated_pipelines_keep_the_versions_of_pipedream(replicas, versions):
    """ceil(sum of r_j from s on / r_s), PipeDream section 3.3."""
    shape = Shape(replicas, 60, 60)
    assert (
        tuple(schedule("pipedream").live(coordinates) for coordinates in shape.coordinates)
        == versions
    )


@MEMBERS
def test_steps_count_updates(member):
    shape = Shape((2, 1), 12, 4)
    program = lower(member, shape)
    for coordinates in shape.coordinates:
        steps = [a.version for a in program.ranks[coordinates.rank] if isinstance(a, Step)]
        assert steps == list(range(1, len(member.updates(coordinates)) + 1))


def test_chunks_are_refused_by_schedules_that_run_one_stage_per_position():
    with pytest.raises(InvalidInput, match="'gpipe' runs one stage per pipeline rank, not 2"):
        lower(schedule("gpipe"), Shape((1, 1), 4, 4, chunks=2))


def test_an_unknown_schedule_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match="no schedule 'gpip'") as caught:
        schedule("gpip")
    assert all(name in caught.value.advice for name in SCHEDULES)


def test_evaluation_is_not_offered_for_training():
    assert schedule("forward-only") not in training_schedules()
    assert {"gpipe", "1f1b-flush", "pipedream"} <= {m.name for m in training_schedules()}
