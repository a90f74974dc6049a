"""The word for each kind of action, the same in every legend, hover and trace."""

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


def kind(action: Action) -> str:
    """The word for an action in legends and hovers."""
    match action:
        case Forward():
            return "forward"
        case Recompute():
            return "recompute"
        case Backward():
            return "backward"
        case BackwardInput():
            return "backward, inputs"
        case BackwardWeight():
            return "backward, weights"
        case Step():
            return "optimizer"
        case Send():
            return "send"
        case Recv():
            return "receive"
        case AllReduce():
            return "all-reduce"
        case Average():
            return "averaging"
