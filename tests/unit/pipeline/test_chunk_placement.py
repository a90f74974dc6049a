"""Where chunks lie, and what follows: a V hands over within a rank, and one rank has both ends."""

import numpy as np
import pytest

from backend.errors import InvalidInput
from backend.pipeline.actions import Recv, Send
from backend.pipeline.chunk_placement import Placement, holder, stage_at
from backend.pipeline.exchange.text import format_program, parse_program
from backend.pipeline.lower import lower
from backend.pipeline.placement import holder_of
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.verify import verify

V = [rule for rule in SCHEDULES.values() if rule.is_v]
EACH = pytest.mark.parametrize("rule", V, ids=lambda rule: rule.name)
FOUR = Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V)


def test_the_stages_of_both_placements():
    assert [coordinates.stages for coordinates in FOUR.coordinates] == [
        (0, 7),
        (1, 6),
        (2, 5),
        (3, 4),
    ]
    round_robin = Shape((1,) * 4, 8, 8, chunks=2)
    assert [each.stages for each in round_robin.coordinates] == [(0, 4), (1, 5), (2, 6), (3, 7)]


@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_who_holds_a_stage_has_it_among_its_own(placement, size):
    stages = np.arange(2 * size)
    shape = Shape((1,) * size, 1, chunks=2, placement=placement)
    assert holder_of(shape, stages).tolist() == [shape.pipeline_rank_of(s) for s in range(2 * size)]
    for rank in range(size):
        own = [int(stage_at(placement, chunk, rank, size)) for chunk in (0, 1)]
        assert own == [s for s in range(2 * size) if holder(placement, s, size) == rank]
        assert own == list(shape.stages_of(rank))


@EACH
def test_nothing_is_sent_at_the_turn(rule):
    """Stage 3 hands over to stage 4 on rank 3; the messages of all other cuts are there."""
    program = lower(rule, FOUR)
    cuts = {a.message.cut for a in program.actions(3) if isinstance(a, Send | Recv)}
    assert cuts == {2, 4}
    everywhere = [a for rank in program.ranks for a in rank if isinstance(a, Send)]
    assert len(everywhere) == 2 * 6 * FOUR.num_microbatches


@EACH
def test_the_text_of_a_v_comes_back(rule):
    program = lower(rule, FOUR)
    assert "placement=v" in format_program(program)
    assert parse_program(format_program(program)).ranks == program.ranks


def test_a_v_has_two_chunks():
    with pytest.raises(InvalidInput, match="a V has 2 chunks on each pipeline rank, not 3"):
        Shape((1, 1), 4, 4, chunks=3, placement=Placement.V)


@EACH
def test_a_schedule_refuses_chunks_that_lie_elsewhere(rule):
    message = f"'{rule.name}' places its chunks v, not round-robin"
    with pytest.raises(InvalidInput, match=message):
        lower(rule, Shape((1,) * 4, 8, 8, chunks=2))
    with pytest.raises(InvalidInput, match="'interleaved' places its chunks round-robin, not v"):
        lower(schedule("interleaved"), FOUR)


@EACH
def test_replicas_that_cannot_share_are_refused(rule):
    uneven = Shape((2, 2), 20, 5, chunks=2, placement=Placement.V)
    with pytest.raises(InvalidInput, match="2 replicas cannot share batches of 5 microbatches"):
        lower(rule, uneven)
    unlike = Shape((2, 1), 16, 8, chunks=2, placement=Placement.V)
    with pytest.raises(InvalidInput, match="as many replicas at each pipeline rank"):
        lower(rule, unlike)


def test_one_program_evaluates_wherever_chunks_lie():
    assert verify(lower(schedule("forward-only"), FOUR)) == ()
