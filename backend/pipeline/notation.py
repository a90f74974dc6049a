"""Programs as text, both ways: one line per rank, in the spirit of torch's "2F0".

    schedule 1f1b-flush
    shape replicas=2,1 microbatches=4 batch=4 chunks=1
    0: 0F0@0 >2:a0.0 0F2@0 >2:a0.2 <2:g1.0 0B0@0 <2:g1.2 0B2@0 0R@1[0,1] 0S@1
    ...

    2F5@1       forward of stage 2, microbatch 5, reading version 1
    2B5@1       its backward; 2I5@1 the input's half, 2W5@1 the weights' half
    2S@3        the step that makes version 3 of stage 2
    2R@3[4,5]   the all-reduce before it, over ranks 4 and 5
    >1:a0.5     send to rank 1 the activation of stage 0, microbatch 5 (g: the gradient)
    <0:a0.5     receive the same from rank 0

Blank lines and what follows a # are skipped when reading.
"""

import re
from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.actions import (
    Action,
    AllReduce,
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Message,
    Recv,
    Send,
    Step,
)
from backend.pipeline.program import Program
from backend.pipeline.shape import Shape

_COMPUTE = re.compile(r"([0-9]+)([FBIW])([0-9]+)@([0-9]+)")
_STEP = re.compile(r"([0-9]+)S@([0-9]+)")
_REDUCE = re.compile(r"([0-9]+)R@([0-9]+)\[([0-9]+(?:,[0-9]+)*)\]")
_MESSAGE = re.compile(r"([<>])([0-9]+):([ag])([0-9]+)\.([0-9]+)")
_SHAPE = re.compile(
    r"shape replicas=([0-9]+(?:,[0-9]+)*) microbatches=([0-9]+) batch=([0-9]+) chunks=([0-9]+)"
)
_COMPUTES: dict[str, type[Forward | Backward | BackwardInput | BackwardWeight]] = {
    "F": Forward,
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
    if found := _REDUCE.fullmatch(text):
        group = tuple(int(rank) for rank in found[3].split(","))
        return AllReduce(int(found[1]), group, int(found[2]))
    raise InvalidInput(
        f"{text!r} is no action",
        advice="Actions look like 2F5@1, 2B5@1, 2S@3, 2R@3[4,5], >1:a0.5 or <0:g1.5.",
    )


def format_program(program: Program) -> str:
    """The text of a program, ending in a newline; `parse_program` reads it back."""
    shape = program.shape
    replicas = ",".join(map(str, shape.replicas))
    counts = f"microbatches={shape.microbatches} batch={shape.batch} chunks={shape.chunks}"
    lines = [f"schedule {program.schedule}", f"shape replicas={replicas} {counts}"]
    for rank, actions in enumerate(program.ranks):
        lines.append(" ".join([f"{rank}:", *map(format_action, actions)]))
    return "\n".join(lines) + "\n"


def parse_program(text: str) -> Program:
    """The program that `text` writes down, not yet verified.

    Raises `InvalidInput` naming the line, and the token where it is one.
    """
    lines = _Lines(text)
    schedule = _parse_schedule(*lines.take("a line such as: schedule pipedream"))
    shape = _parse_shape(*lines.take("a line such as: shape replicas=1,1 microbatches=4 ..."))
    ranks = tuple(
        tuple(_parse_rank(rank, number, line)) for rank, (number, line) in enumerate(lines.rest())
    )
    if len(ranks) != shape.num_ranks:
        raise InvalidInput(f"{len(ranks)} rank lines, but the shape has {shape.num_ranks} ranks")
    return Program(schedule, shape, ranks)


class _Lines:
    """The lines that say something, with their numbers from 1."""

    def __init__(self, text: str) -> None:
        bare = (line.split("#", 1)[0].strip() for line in text.splitlines())
        self._lines = iter([(number, line) for number, line in enumerate(bare, 1) if line])

    def take(self, wanted: str) -> tuple[int, str]:
        for line in self._lines:
            return line
        raise InvalidInput(f"the text ends where this is needed: {wanted}")

    def rest(self) -> Iterator[tuple[int, str]]:
        return self._lines


def _parse_schedule(number: int, line: str) -> str:
    match line.split():
        case ["schedule", name]:
            return name
        case _:
            raise InvalidInput(f"line {number}: {line!r} does not name a schedule")


def _parse_shape(number: int, line: str) -> Shape:
    found = _SHAPE.fullmatch(" ".join(line.split()))
    if not found:
        raise InvalidInput(f"line {number}: {line!r} is no shape")
    replicas = tuple(int(count) for count in found[1].split(","))
    try:
        return Shape(replicas, int(found[2]), int(found[3]), int(found[4]))
    except InvalidInput as fault:
        raise InvalidInput(f"line {number}: {fault}") from None


def _parse_rank(rank: int, number: int, line: str) -> Iterator[Action]:
    head, *tokens = line.split()
    if head != f"{rank}:":
        raise InvalidInput(f"line {number}: {head!r} where {rank}: should be")
    for token in tokens:
        try:
            yield parse_action(token)
        except InvalidInput as fault:
            raise InvalidInput(f"line {number}: {fault}", advice=fault.advice) from None
