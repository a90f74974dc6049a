"""Actions as text, both ways: one token each, in the spirit of torch's "2F0".

2F5@1       forward of stage 2, microbatch 5, reading version 1
2C5@1       the same computed again, for the backward
2B5@1       its backward; 2I5@1 the input's half, 2W5@1 the weights' half
2S@3        the step that makes version 3 of stage 2
2R@3[4,5]   the all-reduce before it, over ranks 4 and 5
2A@3[2,9]   the averaging after it, over the pipelines of ranks 2 and 9
>1:a0.5     send to rank 1 the activation of stage 0, microbatch 5 (g: the gradient)
<0:a0.5     receive the same from rank 0
"""

import re
from typing import Any, cast

from backend.errors import InvalidInput
from backend.pipeline.actions import (
    Action,
    Collective,
    Flow,
    Message,
    Recv,
    Send,
    Step,
)
from backend.pipeline.kinds import FACTS, Form, kind_of

_NUMBER = "([0-9]{1,18})"
_COMPUTE = re.compile(f"{_NUMBER}([A-Z]){_NUMBER}@{_NUMBER}")
_STEP = re.compile(f"{_NUMBER}S@{_NUMBER}")
_COLLECTIVE = re.compile(rf"{_NUMBER}([A-Z])@{_NUMBER}\[([0-9]{{1,18}}(?:,[0-9]{{1,18}})*)\]")
_MESSAGE = re.compile(rf"([<>]){_NUMBER}:([ag]){_NUMBER}\.{_NUMBER}")
_FLOWS = {"a": Flow.ACTIVATION, "g": Flow.GRADIENT}
_COMPUTES: dict[str, Any] = {
    facts.letter: facts.action
    for facts in FACTS.values()
    if facts.form is Form.COMPUTE and facts.has_microbatch
}
_COLLECTIVES: dict[str, Any] = {
    facts.letter: facts.action for facts in FACTS.values() if facts.form is Form.COLLECTIVE
}


def format_action(action: Action) -> str:
    """One token without spaces, such as "2F5@1"; `parse_action` reads it back."""
    letter = FACTS[kind_of(action)].letter
    if isinstance(action, Send | Recv):
        message, peer = action.message, action.to if isinstance(action, Send) else action.source
        return f"{letter}{peer}:{message.flow[0]}{message.stage}.{message.microbatch}"
    if isinstance(action, Collective):
        return f"{action.stage}{letter}@{action.version}[{','.join(map(str, action.group))}]"
    if isinstance(action, Step):
        return f"{action.stage}{letter}@{action.version}"
    return f"{action.stage}{letter}{action.microbatch}@{action.version}"


def parse_action(text: str) -> Action:
    """The action that `text` names; raises `InvalidInput` when it names none."""
    if (found := _COMPUTE.fullmatch(text)) and (compute := _COMPUTES.get(found[2])):
        return cast(Action, compute(int(found[1]), int(found[3]), int(found[4])))
    if found := _MESSAGE.fullmatch(text):
        arrow, peer, flow, stage, microbatch = found.groups()
        message = Message(_FLOWS[flow], int(stage), int(microbatch))
        return Send(message, int(peer)) if arrow == ">" else Recv(message, int(peer))
    if found := _STEP.fullmatch(text):
        return Step(int(found[1]), int(found[2]))
    if (found := _COLLECTIVE.fullmatch(text)) and (collective := _COLLECTIVES.get(found[2])):
        group = tuple(int(rank) for rank in found[4].split(","))
        return cast(Action, collective(int(found[1]), group, int(found[3])))
    raise InvalidInput(
        f"{text!r} is not an action",
        advice="Actions look like 2F5@1, 2B5@1, 2S@3, 2R@3[4,5], >1:a0.5 or <0:g1.5.",
    )
