"""What a rank did beside its actions is told for the action in which it began."""

from pathlib import Path

import torch

from backend.pipeline.actions import Action, Forward, Step
from backend.pipeline.columns import decode
from backend.pipeline.timeline import Span
from workers.runtime.reports.recorder import Recorder

RANK = 1
DID: tuple[Action, ...] = (Forward(1, 0), Step(1, 1), Forward(1, 1))


class Alone:
    """The world of a rank that nobody else is in."""

    rank, hosts, device = RANK, 1, torch.device("cpu")

    def barrier(self) -> None: ...

    def agreed(self, value: float) -> float:
        return value


def recorded() -> Recorder:
    recorder = Recorder(Alone())  # type: ignore[arg-type]  # all of a world that it asks for
    for index, action in enumerate(DID):
        recorder.add(index, action, float(index), index + 0.75)
    return recorder


def test_a_stretch_belongs_to_the_action_in_which_it_began() -> None:
    assert recorded().within([(1.25, 1.5), (2.0, 2.75)]) == [
        Span(RANK, 1, Step(1, 1), 1.25, 1.5),
        Span(RANK, 2, Forward(1, 1), 2.0, 2.75),
    ]


def test_what_came_before_the_first_action_belongs_to_none() -> None:
    assert recorded().within([(-1.0, -0.5)]) == []
    assert recorded().within([]) == []


def test_it_is_written_apart_and_announced_by_its_kind(tmp_path: Path) -> None:
    recorder = recorded()
    spans = recorder.within([(1.25, 1.5)])
    told = recorder.write(tmp_path, 4, "saving", spans)
    assert (told.kind, told.rank, told.segment, told.num_spans) == ("saving", RANK, 4, 1)
    assert list(decode(Path(told.path).read_bytes()).spans) == spans
    assert recorder.write(tmp_path, 4).path != told.path
