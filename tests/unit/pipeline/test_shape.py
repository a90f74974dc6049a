import pytest

from backend.errors import InvalidInput
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.prediction.uniform import uniform_shape


def test_ranks_count_positions_first_and_replicas_within():
    shape = Shape((3, 1, 2), 6)
    assert [(at.pipeline_rank, at.replica) for at in shape.coordinates] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1),
    ]  # fmt: skip
    assert [shape.group_of(stage) for stage in range(3)] == [(0, 1, 2), (3,), (4, 5)]


def test_microbatches_go_round_robin_and_stay_with_their_replica():
    shape = Shape((2, 3), 6)
    assert [shape.rank_of(0, k) for k in range(6)] == [0, 1, 0, 1, 0, 1]
    assert [shape.rank_of(1, k) for k in range(6)] == [2, 3, 4, 2, 3, 4]
    for coordinates in shape.coordinates:
        assert all(
            shape.rank_of(coordinates.pipeline_rank, k) == coordinates.rank
            for k in coordinates.microbatches
        )


def test_batches_are_this_ranks_share_of_each_update():
    coordinates = Shape((2, 1), 8, 4).coordinates[1]
    assert coordinates.batches == ((1, 3), (5, 7))


def test_chunks_wrap_around_the_positions():
    shape = Shape((1, 1), 4, chunks=2)
    assert [coordinates.stages for coordinates in shape.coordinates] == [(0, 2), (1, 3)]
    assert [shape.pipeline_rank_of(stage) for stage in range(shape.num_stages)] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (((), 4), "empty pipeline rank"),
        (((1, 0), 4), "empty pipeline rank"),
        (((1,), 4, 1, 0), "empty pipeline rank"),
        (((1,), 5, 2), "5 microbatches are not whole batches of 2"),
        (((1,), 1, 2), "1 microbatches are not whole batches of 2"),
        (
            ((1, 3), 4),
            "4 microbatches cannot be shared evenly by the 3 replicas at pipeline rank 1",
        ),
    ],
)
def test_counts_that_cannot_be_shared_out_are_refused(shape, message):
    with pytest.raises(InvalidInput, match=message):
        Shape(*shape)


def test_pipelines_are_whole_pipelines_on_the_same_devices():
    shape = Shape((2, 1), 16, 4, num_pipelines=2)
    assert (shape.num_devices, shape.num_ranks) == (3, 6)
    assert [coordinates.pipeline for coordinates in shape.coordinates] == [0, 0, 0, 1, 1, 1]
    assert [shape.device_of(rank) for rank in range(6)] == [0, 1, 2, 0, 1, 2]
    assert shape.sharing(4) == (1, 4)
    assert shape.group_of(0, pipeline=1) == (3, 4)
    assert shape.coordinates[3].microbatches == (4, 6, 12, 14)
    assert shape.coordinates[5].batches == ((4, 5, 6, 7), (12, 13, 14, 15))


@pytest.mark.parametrize("num_pipelines", [1, 2, 3])
@pytest.mark.parametrize("replicas", [(1,), (2, 1), (3, 1, 2)])
def test_every_microbatch_has_one_rank_per_stage_which_knows_it(num_pipelines, replicas):
    shape = Shape(replicas, 24 * num_pipelines, 6, chunks=2, num_pipelines=num_pipelines)
    for stage in range(shape.num_stages):
        for microbatch in range(shape.num_microbatches):
            coordinates = shape.coordinates[shape.rank_of(stage, microbatch)]
            assert microbatch in coordinates.microbatches
            assert stage in coordinates.stages
            assert coordinates.pipeline == shape.pipeline_of(microbatch)
            assert (
                shape.microbatch_at(coordinates.pipeline, shape.turn_of(microbatch)) == microbatch
            )


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"num_pipelines": 0}, "0 pipelines"),
        ({"advance": -1}, "advance of -1"),
        ({"num_pipelines": 3}, "2 batches cannot be shared evenly by 3 pipelines"),
    ],
)
def test_pipelines_that_do_not_share_evenly_are_refused(counts, message):
    with pytest.raises(InvalidInput, match=message):
        Shape((1, 1), 8, 4, **counts)


@pytest.mark.parametrize(("size", "count"), [(2**31, 8), (4, 2**31), (3000, 3000)])
def test_a_program_that_no_memory_holds_is_refused(size: int, count: int):
    with pytest.raises(InvalidInput, match="5,000,000 forwards are the most"):
        uniform_shape("1f1b-flush", size, count)
    with pytest.raises(InvalidInput, match="5,000,000 forwards are the most"):
        lower(schedule("1f1b-flush"), Shape((1,) * min(size, 3000), count * 1000, count * 1000))
