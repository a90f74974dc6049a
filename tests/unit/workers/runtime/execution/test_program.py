"""What is read from a program before it runs."""

from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from workers.runtime.execution.program import (
    applied,
    evaluation_program,
    last_reads,
    training_program,
)


def test_each_stashed_version_is_read_last_by_its_backward() -> None:
    program = lower(schedule("pipedream"), Shape((1, 1, 1), 6))
    for rank in program.ranks:
        for (stage, version), index in last_reads(rank).items():
            assert type(rank[index]).__name__ == "Backward"
            assert (rank[index].stage, rank[index].version) == (stage, version)


def test_pipedream_applies_a_round_of_replicas() -> None:
    program = lower(schedule("pipedream"), Shape((2, 1), 6))
    assert applied(program, 0) == {1: (0, 1), 2: (2, 3), 3: (4, 5)}
    assert applied(program, 1) == {k + 1: (k,) for k in range(6)}


def test_a_flush_applies_the_batch_however_it_is_shared() -> None:
    program = lower(schedule("gpipe"), Shape((2,), 6, batch=3))
    assert applied(program, 0) == {1: (0, 1, 2), 2: (3, 4, 5)}


def test_a_rank_takes_its_own_part() -> None:
    shape = Shape((2, 1), 6)
    whole = lower(schedule("pipedream"), shape)
    for rank in range(shape.num_ranks):
        own = training_program("pipedream", shape, rank)
        assert own.actions == whole.ranks[rank]
        assert own.applied == {
            stage: applied(whole, stage) for stage in shape.coordinates[rank].stages
        }


def test_only_the_ranks_of_one_pipeline_evaluate() -> None:
    shape = Shape((1, 1), 3)
    assert [len(evaluation_program(shape, rank).actions) for rank in range(4)] == [6, 6, 0, 0]
