"""Which message a computation needs and makes, and between which ranks it travels."""

from backend.pipeline.actions import Compute, Flow, Message, Step
from backend.pipeline.kinds import FACTS, kind_of
from backend.pipeline.shape import Shape


def needs(action: Compute, shape: Shape) -> Message | None:
    """What the stage before (forward) or after (backward) must have made, if there is one."""
    if isinstance(action, Step) or (flow := FACTS[kind_of(action)].flow) is None:
        return None
    source = action.stage - onward(flow)
    return Message(flow, source, action.microbatch) if _crosses(flow, source, shape) else None


def makes(action: Compute, shape: Shape) -> Message | None:
    """What the stage after (forward) or before (backward) waits for, if there is one."""
    if isinstance(action, Step) or (flow := FACTS[kind_of(action)].flow) is None:
        return None
    crosses = _crosses(flow, action.stage, shape)
    return Message(flow, action.stage, action.microbatch) if crosses else None


def _crosses(flow: Flow, stage: int, shape: Shape) -> bool:
    """Whether what `stage` makes is awaited by the next one, or the one before."""
    target = stage + onward(flow)
    if not (0 <= stage < shape.num_stages and 0 <= target < shape.num_stages):
        return False
    return flow is Flow.ACTIVATION or target not in shape.one_way


def onward(flow: Flow) -> int:
    """The stages by which a message moves on: activations to the next, gradients back."""
    return 1 if flow is Flow.ACTIVATION else -1


def producer(message: Message, shape: Shape) -> int:
    """The rank on which `message` is made."""
    return shape.rank_of(message.stage, message.microbatch)


def consumer(message: Message, shape: Shape) -> int:
    """The rank that computes with `message`."""
    return shape.rank_of(message.stage + onward(message.flow), message.microbatch)
