"""What a rank holds while it runs its program: forwards in flight and weight versions.

Both follow from one rank's actions alone, without seconds. Memory is predicted from the
peaks, and the verifier compares them with what the schedule promises.
"""

from collections.abc import Sequence

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)


def in_flight(actions: Sequence[Action]) -> list[int]:
    """After each action, the forwards (of all stages) whose backward is still to come.

    A forward that no backward on this rank follows up holds nothing. With a split backward
    the activations are held until its weights' half.
    """
    ends = {
        (action.stage, action.microbatch)
        for action in actions
        if isinstance(action, Backward | BackwardWeight)
    }
    held: set[tuple[int, int]] = set()
    counts = []
    for action in actions:
        match action:
            case Forward(stage, microbatch) if (stage, microbatch) in ends:
                held.add((stage, microbatch))
            case Backward(stage, microbatch) | BackwardWeight(stage, microbatch):
                held.discard((stage, microbatch))
            case Forward() | Recompute() | BackwardInput() | Step() | Send() | Recv():
                pass
            case AllReduce() | Average():
                pass
        counts.append(len(held))
    return counts


def live_versions(actions: Sequence[Action], stage: int) -> list[int]:
    """After each action, the weight versions of `stage` that must be kept: the newest, and
    those that a later action reads."""
    last_read = {
        action.version: index
        for index, action in enumerate(actions)
        if isinstance(action, Compute) and not isinstance(action, Step) and action.stage == stage
    }
    kept, newest = {0}, 0
    counts = []
    for index, action in enumerate(actions):
        if isinstance(action, Step) and action.stage == stage:
            newest = action.version
            kept.add(newest)
        if isinstance(action, Compute):
            kept = {v for v in kept if v == newest or last_read.get(v, -1) > index}
        counts.append(len(kept))
    return counts
