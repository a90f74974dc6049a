"""Who sums with whom, and which rank speaks for a stage and for the run."""

from dataclasses import dataclass, field

import pytest
import torch

from backend.pipeline.shape import Shape
from workers.runtime.messages.groups import groups, is_reporter, led_stages

CPU = torch.device("cpu")


@dataclass
class FakeGroup:
    """Adds 1 for every rank in it."""

    ranks: tuple[int, ...]
    given: list[torch.Tensor] = field(default_factory=list)

    def sum(self, tensor: torch.Tensor) -> None:
        tensor += len(self.ranks)

    def broadcast(self, tensor: torch.Tensor) -> None:
        self.given.append(tensor)


@dataclass
class FakeWorld:
    """One rank of a world whose groups are made without other processes."""

    rank: int
    everybody: FakeGroup = field(default_factory=lambda: FakeGroup((-1,)))
    device: torch.device = CPU
    made: list[tuple[int, ...]] = field(default_factory=list)

    def group(self, ranks: tuple[int, ...]) -> FakeGroup:
        self.made.append(ranks)
        return FakeGroup(ranks)


@pytest.mark.parametrize(
    "shape", [Shape((2, 1), 4), Shape((1, 2), 8, 2, num_pipelines=2), Shape((1,), 2)]
)
def test_every_rank_makes_the_same_groups_and_keeps_its_own(shape: Shape) -> None:
    worlds = [FakeWorld(rank) for rank in range(shape.num_ranks)]
    found = [groups(world, shape) for world in worlds]
    assert all(world.made == worlds[0].made for world in worlds)
    assert all(len(ranks) > 1 for ranks in worlds[0].made)
    for rank, each in enumerate(found):
        coordinates = shape.coordinates[rank]
        for stage in range(shape.num_stages):
            members = shape.group_of(stage, coordinates.pipeline)
            own = each.replicas.get(stage)
            assert (own.ranks if own else None) == (
                members if rank in members and len(members) > 1 else None
            )
        assert (each.peers.ranks if each.peers else (rank,)) == shape.sharing(rank)


def test_a_pipeline_is_all_ranks_one_pipeline_or_this_rank_alone() -> None:
    world = FakeWorld(0)
    assert groups(world, Shape((1, 1), 4)).pipeline is world.everybody
    assert groups(FakeWorld(3), Shape((1, 1), 4, num_pipelines=2)).pipeline.ranks == (2, 3)
    alone = groups(FakeWorld(0), Shape((1,), 4, num_pipelines=2))
    assert alone.pipeline is None
    assert alone.pipeline_total(3.0) == 3.0
    assert groups(FakeWorld(3), Shape((1, 1), 4, num_pipelines=2)).pipeline_total(3.0) == 5.0


def test_only_a_replicated_stage_shares_its_tensors() -> None:
    found = groups(FakeWorld(0), Shape((2, 1), 4))
    found.share(0, [torch.zeros(1)])
    found.share(1, [torch.zeros(1)])
    assert len(found.replicas[0].given) == 1


def test_the_first_replica_leads_a_stage_and_that_of_the_last_stage_reports() -> None:
    shape = Shape((2, 2), 8, 2, num_pipelines=2)
    assert [led_stages(coordinates) for coordinates in shape.coordinates] == [
        (0,),
        (),
        (1,),
        (),
    ] * 2
    assert [is_reporter(coordinates) for coordinates in shape.coordinates] == [
        False,
        False,
        True,
    ] + [False] * 5
