"""Which message a computation needs and makes, and between which ranks it travels."""

from backend.pipeline.actions import Compute, Flow, Message, Step
from backend.pipeline.kinds import FACTS, kind_of
from backend.pipeline.shape import Shape


def needs(action: Compute, shape: Shape) -> Message | None:
    """What the stage before (forward) or after (backward) must have made, if there is one."""
    if isinstance(action, Step) or (flow := FACTS[kind_of(action)].flow) is None:
        return None
    source = action.stage - onward(flow)
    return Message(flow, source, action.microbatch) if 0 <= source < shape.num_stages else None


def makes(action: Compute, shape: Shape) -> Message | None:
    """What the stage after (forward) or before (backward) waits for, if there is one."""
    if isinstance(action, Step) or (flow := FACTS[kind_of(action)].flow) is None:
        return None
    target = action.stage + onward(flow)
    is_awaited = 0 <= target < shape.num_stages
    return Message(flow, action.stage, action.microbatch) if is_awaited else None


def onward(flow: Flow) -> int:
    """The stages by which a message moves on: activations to the next, gradients back."""
    return 1 if flow is Flow.ACTIVATION else -1


def producer(message: Message, shape: Shape) -> int:
    """The rank on which `message` is made."""
    return shape.rank_of(message.stage, message.microbatch)


def consumer(message: Message, shape: Shape) -> int:
    """The rank that computes with `message`."""
    return shape.rank_of(message.stage + onward(message.flow), message.microbatch)
