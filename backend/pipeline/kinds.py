"""The kinds of actions, and for each what its readers ask: one row of one table.

A reader of columns looks facts up by kind instead of comparing numbers, so that a new kind is a
member here, its row, and what only its own meaning can say (see CONTRIBUTING).
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Kind(IntEnum):
    """What a row of a program is; messages are told apart by what they carry."""

    FORWARD = 0
    RECOMPUTE = 1
    BACKWARD = 2
    BACKWARD_INPUT = 3
    BACKWARD_WEIGHT = 4
    STEP = 5
    SEND_ACTIVATION = 6
    SEND_GRADIENT = 7
    RECV_ACTIVATION = 8
    RECV_GRADIENT = 9
    ALL_REDUCE = 10
    AVERAGE = 11


class Form(Enum):
    """What an action is to the clock."""

    COMPUTE = "keeps the rank and its device busy"
    SEND = "is posted, and the rank goes on"
    RECV = "is waited for"
    COLLECTIVE = "starts when the last of its group comes"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a kind.

    word            in legends, hovers and traces
    letter          in the notation
    action          the dataclass of the executor's view
    form            what it is to the clock
    flow            what a message carries; of a compute, the messages that it needs and makes
    has_microbatch  whether it is about one microbatch
    has_version     whether it reads or makes a version
    reads           whether it reads weights
    learns          whether it adds gradients of the weights, which ends a backward
    """

    word: str
    letter: str
    action: type[Action]
    form: Form = Form.COMPUTE
    flow: Flow | None = None
    has_microbatch: bool = True
    has_version: bool = True
    reads: bool = False
    learns: bool = False


def _message(word: str, letter: str, action: type[Action], form: Form, flow: Flow) -> Facts:
    return Facts(word, letter, action, form, flow, has_version=False)


def _collective(word: str, letter: str, action: type[Action]) -> Facts:
    return Facts(word, letter, action, Form.COLLECTIVE, has_microbatch=False)


_THERE, _BACK = Flow.ACTIVATION, Flow.GRADIENT
FACTS: dict[Kind, Facts] = {
    Kind.FORWARD: Facts("forward", "F", Forward, flow=_THERE, reads=True),
    Kind.RECOMPUTE: Facts("recompute", "C", Recompute, reads=True),
    Kind.BACKWARD: Facts("backward", "B", Backward, flow=_BACK, reads=True, learns=True),
    Kind.BACKWARD_INPUT: Facts("backward, inputs", "I", BackwardInput, flow=_BACK, reads=True),
    Kind.BACKWARD_WEIGHT: Facts("backward, weights", "W", BackwardWeight, reads=True, learns=True),
    Kind.STEP: Facts("optimizer", "S", Step, has_microbatch=False),
    Kind.SEND_ACTIVATION: _message("send", ">", Send, Form.SEND, _THERE),
    Kind.SEND_GRADIENT: _message("send", ">", Send, Form.SEND, _BACK),
    Kind.RECV_ACTIVATION: _message("receive", "<", Recv, Form.RECV, _THERE),
    Kind.RECV_GRADIENT: _message("receive", "<", Recv, Form.RECV, _BACK),
    Kind.ALL_REDUCE: _collective("all-reduce", "R", AllReduce),
    Kind.AVERAGE: _collective("averaging", "A", Average),
}
_KINDS = {(facts.action, facts.flow): kind for kind, facts in FACTS.items()}
_OF_COMPUTES = {facts.action: kind for kind, facts in FACTS.items()}


def kind_of(action: Action) -> Kind:
    """The kind of an action."""
    if isinstance(action, Send | Recv):
        return _KINDS[type(action), action.message.flow]
    return _OF_COMPUTES[type(action)]


def kind(action: Action) -> str:
    """The word for an action in legends, hovers and traces."""
    return FACTS[kind_of(action)].word


class Is:
    """Which kinds have a property, as tables to be indexed with a column of kinds."""

    COMPUTE: Bools = np.array([FACTS[k].form is Form.COMPUTE for k in Kind])
    SEND: Bools = np.array([FACTS[k].form is Form.SEND for k in Kind])
    RECV: Bools = np.array([FACTS[k].form is Form.RECV for k in Kind])
    COLLECTIVE: Bools = np.array([FACTS[k].form is Form.COLLECTIVE for k in Kind])
    MESSAGE: Bools = SEND | RECV
    READING: Bools = np.array([FACTS[k].reads for k in Kind])
    LEARNING: Bools = np.array([FACTS[k].learns for k in Kind])
    OF_MICROBATCH: Bools = np.array([FACTS[k].has_microbatch for k in Kind])
    VERSIONED: Bools = np.array([FACTS[k].has_version for k in Kind])


FLOWS = (Flow.ACTIVATION, Flow.GRADIENT)
FLOW: Ints = np.array([-1 if (f := FACTS[k].flow) is None else FLOWS.index(f) for k in Kind])
"""Per kind the place of its flow in `FLOWS`, -1 where it has none."""
ONWARD: Ints = np.array([{None: 0, _THERE: 1, _BACK: -1}[FACTS[k].flow] for k in Kind])
"""Per kind the stages by which its flow moves on: 1 for activations, -1 for gradients."""
