"""When ranks save: what rank 0 chooses on one host and on several, and who hears of it late."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.events import Chosen, Event, Rescuing, Saved
from backend.runs.request.spec import CheckpointSpec, TrainSpec
from workers.runtime.checkpoints import checkpoints as module
from workers.runtime.checkpoints.checkpoints import AHEAD, AHEAD_NOW, REQUEST, Checkpoints

BATCH, MICROBATCHES = 4, 4_000
PLAN = Plan("two", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "1f1b-flush", 2, batch=BATCH)


@dataclass
class Clock:
    """Stands still unless a test moves it."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Rank:
    """One of two, with a stage of its own and its host's folder."""

    checkpoints: Checkpoints
    folder: Path
    stage: int
    marks: dict[int, int]
    told: list[Event] = field(default_factory=list)

    def updated(self, *microbatches: int) -> None:
        for number in microbatches:
            self.checkpoints.updating(self.stage, number)
            self.checkpoints.updated()

    def saved(self) -> list[int]:
        """The steps of what it saved, once all of it is written."""
        self.checkpoints.close()
        return [event.step for event in self.told if isinstance(event, Saved)]

    @property
    def chosen(self) -> list[Chosen]:
        return [event for event in self.told if isinstance(event, Chosen)]


REPLICATED = replace(PLAN, partition=Partition((Stage(0, 1, (0, 1)), Stage(1, 2, (2, 3)))))
"""Ranks 0 and 1 have the first stage, 2 and 3 the second one."""

Make = Callable[..., Rank]


def copy_of(stage: int, alone: bool) -> dict[str, torch.Tensor]:
    return {"weight/w": torch.zeros(2)}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Make:
    def made(
        rank: int = 0, hosts: int = 2, seconds: float = 5.0, plan: Plan = PLAN, whole: int = 1
    ) -> Rank:
        folder = tmp_path / f"host-{rank if hosts > 1 else 0}"
        folder.mkdir(exist_ok=True)
        told: list[Event] = []
        replicas = plan.partition.replicas
        world, shape = SimpleNamespace(hosts=hosts), Shape(replicas, MICROBATCHES, BATCH)
        spec = TrainSpec(1, plan, checkpoints=CheckpointSpec(seconds=seconds), round=whole)
        place, marks = shape.coordinates[rank], dict.fromkeys(range(2), 0)
        checkpoints = Checkpoints(
            world, place, copy_of, marks.__getitem__, spec, shape, folder, told.append
        )
        checkpoints.begin(3, lambda remembered: None)
        checkpoints.watch(clock.monotonic)
        return Rank(checkpoints, folder, place.stages[0], marks, told)

    return made


def forwards(rank: Rank, clock: Clock, first: int, stop: int, each: float) -> None:
    """Forward microbatches, `each` in so many seconds."""
    for microbatch in range(first, stop):
        rank.checkpoints.forward(microbatch)
        clock.now += each


def test_on_one_host_the_next_round_is_chosen_and_every_rank_finds_it(make: Make, clock: Clock):
    rank, other = make(hosts=1), make(1, hosts=1)
    forwards(rank, clock, 0, 502, 0.01)
    forwards(other, clock, 0, 502, 0.01)
    assert not rank.chosen
    other.updated(500, 504, 508)
    rank.updated(500, 504, 508)
    assert rank.saved() == other.saved() == [3 * MICROBATCHES // BATCH + 504 // BATCH]


def test_on_several_hosts_the_clock_s_comes_seconds_later_and_is_told(make: Make, clock: Clock):
    rank = make()
    forwards(rank, clock, 0, 502, 0.01)
    (chosen,) = rank.chosen
    assert chosen.epoch == 3
    assert chosen.num_microbatches % BATCH == 0
    assert 500 + AHEAD / 0.01 <= chosen.num_microbatches <= 502 + AHEAD / 0.01 + BATCH
    rank.updated(500, chosen.num_microbatches, chosen.num_microbatches + BATCH)
    assert rank.saved() == [(3 * MICROBATCHES + chosen.num_microbatches) // BATCH]


def test_one_that_is_asked_for_comes_sooner(make: Make, clock: Clock):
    rank = make(seconds=0)
    forwards(rank, clock, 0, 100, 0.01)
    (rank.folder / REQUEST).touch()
    forwards(rank, clock, 100, 120, 0.01)
    (chosen,) = rank.chosen
    assert chosen.num_microbatches <= 103 + AHEAD_NOW / 0.01 + BATCH


def test_before_a_pace_is_known_nothing_is_chosen(make: Make, clock: Clock):
    rank = make(seconds=0)
    (rank.folder / REQUEST).touch()
    forwards(rank, clock, 0, 40, 0.01)
    assert not rank.chosen
    forwards(rank, clock, 40, 90, 0.01)
    assert len(rank.chosen) == 1


def test_what_lies_beyond_the_epoch_is_left_to_its_end(make: Make, clock: Clock):
    rank = make()
    rank.checkpoints.begin(4, lambda remembered: None)
    forwards(rank, clock, MICROBATCHES - 150, MICROBATCHES, 0.04)
    assert clock.now > 5
    assert not rank.chosen
    asked: list[float] = []
    rank.checkpoints._world.agreed = lambda wish: asked.append(wish) or wish
    rank.checkpoints.epoch_over()
    assert asked == [1.0]
    assert rank.saved() == [5 * MICROBATCHES // BATCH]


def test_a_rank_that_hears_it_late_saves_nothing_and_takes_part_in_the_next(
    make: Make, clock: Clock
):
    late = make(1)
    late.updated(96, 100, 104)
    for number in (100, 120):
        (late.folder / Chosen(0, 3, number).file).touch()
    late.updated(108, 112, 116, 120, 124)
    assert late.saved() == [(3 * MICROBATCHES + 120) // BATCH]


def test_one_of_another_epoch_is_not_meant(make: Make):
    rank = make(1)
    (rank.folder / Chosen(0, 2, 100).file).touch()
    rank.updated(96, 100, 104)
    assert rank.saved() == []


def test_a_fallback_saves_where_the_plan_that_it_stands_in_for_can_go_on(make: Make, clock: Clock):
    rank = make(1, whole=3 * BATCH)
    for number in (4 * BATCH, 6 * BATCH):
        (rank.folder / Chosen(0, 3, number).file).touch()
    rank.updated(*range(BATCH, 8 * BATCH, BATCH))
    assert rank.saved() == [3 * MICROBATCHES // BATCH + 6]


@pytest.mark.parametrize("number", range(4))
def test_every_replica_saves_what_it_has_when_another_one_is_lost(make: Make, number: int):
    rank = make(number, hosts=1, plan=REPLICATED)
    rank.updated(4, 8)
    rank.checkpoints.rescue()
    (event,) = [event for event in rank.told if isinstance(event, Saved)]
    assert (event.step, event.samples, event.num_files) == (3 * MICROBATCHES // BATCH + 2, 16, 2)
    assert Path(event.path).name == f"stage-{number // 2}-pipeline-0.safetensors"
    assert Path(event.path).parent.name == f"3-8-{number}"
    assert isinstance(rank.told[0], Rescuing)


def test_what_a_lost_rank_s_update_would_need_too_is_not_saved(make: Make):
    none = make(hosts=1, plan=REPLICATED)
    none.checkpoints.rescue()
    assert none.saved() == []  # no update was made yet
    moved = make(1, hosts=1, plan=REPLICATED)
    moved.updated(4)
    moved.marks[0] += 1  # as batch norm's statistics do
    moved.checkpoints.rescue()
    assert moved.saved() == []
    alone = make(1, hosts=1)
    alone.updated(4)
    alone.checkpoints.rescue()
    assert alone.saved() == alone.told == []  # nobody else has its stage
    double = make(hosts=1, plan=replace(REPLICATED, schedule="2bw"))
    double.updated(4)
    double.checkpoints.rescue()
    assert double.told == []
