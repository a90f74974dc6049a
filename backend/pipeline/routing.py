"""Which message a computation needs and makes, and between which ranks it travels."""

from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Flow,
    Forward,
    Message,
    Recompute,
    Step,
)
from backend.pipeline.shape import Shape


def needs(action: Compute, shape: Shape) -> Message | None:
    """What the stage before (forward) or after (backward) must have made, if there is one."""
    match action:
        case Forward(stage, microbatch):
            return Message(Flow.ACTIVATION, stage - 1, microbatch) if stage > 0 else None
        case Backward(stage, microbatch) | BackwardInput(stage, microbatch):
            last = shape.num_stages - 1
            return Message(Flow.GRADIENT, stage + 1, microbatch) if stage < last else None
        case BackwardWeight() | Recompute() | Step():
            return None


def makes(action: Compute, shape: Shape) -> Message | None:
    """What the stage after (forward) or before (backward) waits for, if there is one."""
    match action:
        case Forward(stage, microbatch):
            last = shape.num_stages - 1
            return Message(Flow.ACTIVATION, stage, microbatch) if stage < last else None
        case Backward(stage, microbatch) | BackwardInput(stage, microbatch):
            return Message(Flow.GRADIENT, stage, microbatch) if stage > 0 else None
        case BackwardWeight() | Recompute() | Step():
            return None


def maker(message: Message, shape: Shape) -> int:
    """The rank on which `message` is made."""
    return shape.rank_of(message.stage, message.microbatch)


def taker(message: Message, shape: Shape) -> int:
    """The rank that computes with `message`."""
    onward = 1 if message.flow is Flow.ACTIVATION else -1
    return shape.rank_of(message.stage + onward, message.microbatch)
