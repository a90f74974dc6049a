"""Samples come in the order of a rank's forwards, ahead of their turn, with a span each."""

import threading
from dataclasses import dataclass, field
from itertools import count

import pytest
import torch

from backend.pipeline.actions import Forward
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from workers.data.cutting import Cutting
from workers.data.errors import DataFailed
from workers.data.split import TensorSplit
from workers.runtime.samples.epoch import Epoch
from workers.runtime.samples.loading import AHEAD, loading

CPU = torch.device("cpu")
NUMBERS = TensorSplit(torch.arange(48), torch.arange(48) * 10)


@dataclass
class Slow:
    """Samples on a disk: counts how many microbatches were loaded; `broken` ones raise."""

    broken: int = -1
    loaded: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    lengths: None = None
    is_at_hand: bool = False

    def __len__(self) -> int:
        return 48

    def inputs(self, numbers, length=None):
        if self.broken in numbers:
            raise DataFailed("sample 13 is broken")
        self.loaded.release()
        return numbers

    def targets(self, numbers, length=None):
        self.loaded.release()
        return numbers * 10


@pytest.mark.parametrize("part", [NUMBERS, Slow()], ids=["at hand", "slow"])
@pytest.mark.parametrize("name", ["pipedream", "gpipe", "interleaved"])
@pytest.mark.parametrize("replicas", [(1,), (1, 1), (2, 2)])
def test_every_forward_gets_its_samples(part, name: str, replicas: tuple[int, ...]) -> None:
    chunks = 2 if name == "interleaved" else 1
    program = lower(schedule(name), Shape(replicas, 12, 4, chunks=chunks))
    last = program.shape.num_stages - 1
    epoch = Epoch.shuffled(part, Cutting(4, 4), 1, 1)
    plain = Epoch.shuffled(NUMBERS, Cutting(4, 4), 1, 1)
    for rank, actions in enumerate(program.ranks):
        with loading(epoch, actions, {last}, rank, count(0.5).__next__) as found:
            for action in actions:
                if isinstance(action, Forward) and action.stage == 0:
                    assert torch.equal(
                        found.bundle(action.microbatch, CPU)[0], plain.inputs(action.microbatch)
                    )
                if isinstance(action, Forward) and action.stage == last:
                    answers = found.answers(action.microbatch, CPU)
                    assert torch.equal(answers, plain.targets(action.microbatch))
        for span in found.spans:
            assert (span.rank, actions[span.index]) == (rank, span.action)
            assert span.seconds > 0


def test_some_microbatches_are_loaded_before_anybody_asks() -> None:
    part = Slow()
    epoch = Epoch.shuffled(part, Cutting(4), 1, 1)
    actions = tuple(Forward(0, microbatch) for microbatch in range(12))
    with loading(epoch, actions, {1}, 0, lambda: 0.0):
        assert all(part.loaded.acquire(timeout=240) for _ in range(AHEAD))


def test_what_cannot_be_loaded_is_told_when_its_turn_comes() -> None:
    part = Slow(broken=13)
    epoch = Epoch(part, [(torch.arange(4 * k, 4 * k + 4), None) for k in range(12)], 4)
    actions = tuple(Forward(0, microbatch) for microbatch in range(12))
    with loading(epoch, actions, {1}, 0, lambda: 0.0) as found:
        for microbatch in range(3):
            found.bundle(microbatch, CPU)
        with pytest.raises(DataFailed, match="sample 13"):
            found.bundle(3, CPU)
