"""Actions as text, both ways: one token each, in the spirit of torch's "2F0".

2F5@1       forward of stage 2, microbatch 5, reading version 1
2C5@1       the same computed again, for the backward
2B5@1       its backward; 2I5@1 the input's half, 2W5@1 the weights' half
2S@3        the step that makes version 3 of stage 2
2R@3[4,5]   the all-reduce before it, over ranks 4 and 5
2A@3[2,9]   the averaging after it, over the lanes of ranks 2 and 9
>1:a0.5     send to rank 1 the activation of stage 0, microbatch 5 (g: the gradient)
<0:a0.5     receive the same from rank 0
"""

import re

from backend.errors import InvalidInput
from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)

_COMPUTE = re.compile(r"([0-9]{1,18})([FCBIW])([0-9]{1,18})@([0-9]{1,18})")
_STEP = re.compile(r"([0-9]{1,18})S@([0-9]{1,18})")
_MEETING = re.compile(r"([0-9]{1,18})([RA])@([0-9]{1,18})\[([0-9]{1,18}(?:,[0-9]{1,18})*)\]")
_MESSAGE = re.compile(r"([<>])([0-9]{1,18}):([ag])([0-9]{1,18})\.([0-9]{1,18})")
_COMPUTES: dict[str, type[Forward | Recompute | Backward | BackwardInput | BackwardWeight]] = {
    "F": Forward,
    "C": Recompute,
    "B": Backward,
    "I": BackwardInput,
    "W": BackwardWeight,
}
_FLOWS = {"a": Flow.ACTIVATION, "g": Flow.GRADIENT}


def format_action(action: Action) -> str:
    """One token without spaces, such as "2F5@1"; `parse_action` reads it back."""
    match action:
        case Forward(stage, microbatch, version):
            return f"{stage}F{microbatch}@{version}"
        case Recompute(stage, microbatch, version):
            return f"{stage}C{microbatch}@{version}"
        case Backward(stage, microbatch, version):
            return f"{stage}B{microbatch}@{version}"
        case BackwardInput(stage, microbatch, version):
            return f"{stage}I{microbatch}@{version}"
        case BackwardWeight(stage, microbatch, version):
            return f"{stage}W{microbatch}@{version}"
        case Step(stage, version):
            return f"{stage}S@{version}"
        case AllReduce(stage, group, version):
            return f"{stage}R@{version}[{','.join(map(str, group))}]"
        case Average(stage, group, version):
            return f"{stage}A@{version}[{','.join(map(str, group))}]"
        case Send(message, to):
            return f">{to}:{_format_message(message)}"
        case Recv(message, source):
            return f"<{source}:{_format_message(message)}"


def _format_message(message: Message) -> str:
    return f"{message.flow[0]}{message.stage}.{message.microbatch}"


def parse_action(text: str) -> Action:
    """The action that `text` names; raises `InvalidInput` when it names none."""
    if found := _COMPUTE.fullmatch(text):
        stage, kind, microbatch, version = found.groups()
        return _COMPUTES[kind](int(stage), int(microbatch), int(version))
    if found := _MESSAGE.fullmatch(text):
        arrow, peer, flow, stage, microbatch = found.groups()
        message = Message(_FLOWS[flow], int(stage), int(microbatch))
        return Send(message, int(peer)) if arrow == ">" else Recv(message, int(peer))
    if found := _STEP.fullmatch(text):
        return Step(int(found[1]), int(found[2]))
    if found := _MEETING.fullmatch(text):
        group = tuple(int(rank) for rank in found[4].split(","))
        meeting = AllReduce if found[2] == "R" else Average
        return meeting(int(found[1]), group, int(found[3]))
    raise InvalidInput(
        f"{text!r} is no action",
        advice="Actions look like 2F5@1, 2B5@1, 2S@3, 2R@3[4,5], >1:a0.5 or <0:g1.5.",
    )
