import pytest

from backend.errors import InvalidInput
from backend.pipeline.shape import Shape


def test_ranks_count_positions_first_and_replicas_within():
    shape = Shape((3, 1, 2), 6)
    assert [(seat.position, seat.replica) for seat in shape.seats] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1),
    ]  # fmt: skip
    assert [shape.group_of(stage) for stage in range(3)] == [(0, 1, 2), (3,), (4, 5)]


def test_microbatches_go_round_robin_and_stay_with_their_replica():
    shape = Shape((2, 3), 6)
    assert [shape.rank_of(0, k) for k in range(6)] == [0, 1, 0, 1, 0, 1]
    assert [shape.rank_of(1, k) for k in range(6)] == [2, 3, 4, 2, 3, 4]
    for seat in shape.seats:
        assert all(shape.rank_of(seat.position, k) == seat.rank for k in seat.microbatches)


def test_batches_are_this_seats_share_of_each_update():
    seat = Shape((2, 1), 8, 4).seats[1]
    assert seat.batches == ((1, 3), (5, 7))


def test_chunks_wrap_around_the_positions():
    shape = Shape((1, 1), 4, chunks=2)
    assert [seat.stages for seat in shape.seats] == [(0, 2), (1, 3)]
    assert [shape.position_of(stage) for stage in range(shape.num_stages)] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (((), 4), "empty position"),
        (((1, 0), 4), "empty position"),
        (((1,), 4, 1, 0), "empty position"),
        (((1,), 5, 2), "5 microbatches are not whole batches of 2"),
        (((1,), 1, 2), "1 microbatches are not whole batches of 2"),
        (((1, 3), 4), "4 microbatches cannot be shared evenly by the 3 replicas at position 1"),
    ],
)
def test_counts_that_cannot_be_shared_out_are_refused(shape, message):
    with pytest.raises(InvalidInput, match=message):
        Shape(*shape)
