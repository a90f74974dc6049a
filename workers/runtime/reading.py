"""What an executor must know about its program before it starts."""

from collections import defaultdict
from collections.abc import Sequence

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.program import Program


def last_reads(actions: Sequence[Action]) -> dict[tuple[int, int], int]:
    """(stage, version) -> the index of the last action of this rank that reads it."""
    last: dict[tuple[int, int], int] = {}
    for index, action in enumerate(actions):
        match action:
            case (
                Forward(stage, _, version)
                | Recompute(stage, _, version)
                | Backward(stage, _, version)
                | BackwardInput(stage, _, version)
                | BackwardWeight(stage, _, version)
            ):
                last[stage, version] = index
            case Step() | Send() | Recv() | AllReduce() | Average():
                pass
    return last


def before_reductions(actions: Sequence[Action]) -> frozenset[int]:
    """The indices of the backwards after which their stage's gradients are reduced next: what
    is complete within them may travel already."""
    last: dict[int, int] = {}
    found = set()
    for index, action in enumerate(actions):
        match action:
            case Backward(stage) | BackwardWeight(stage):
                last[stage] = index
            case AllReduce(stage):
                found.add(last.pop(stage, -1))
            case Forward() | Recompute() | BackwardInput() | Step() | Send() | Recv() | Average():
                pass
    return frozenset(found)


def applied(program: Program, stage: int, lane: int = 0) -> dict[int, tuple[int, ...]]:
    """version -> the microbatches whose gradients its `Step` applies, over the lane's replicas."""
    found: dict[int, list[int]] = defaultdict(list)
    for rank in program.shape.group_of(stage, lane):
        pending: list[int] = []
        for action in program.ranks[rank]:
            match action:
                case Backward(at, microbatch) | BackwardWeight(at, microbatch):
                    if at == stage:
                        pending.append(microbatch)
                case Step(at, version):
                    if at == stage:
                        found[version] += pending
                        pending = []
                case Forward() | Recompute() | BackwardInput() | Send() | Recv():
                    pass
                case AllReduce() | Average():
                    pass
    return {version: tuple(sorted(microbatches)) for version, microbatches in found.items()}
