"""Programs as Stageflow's own JSON, both ways; it says its format and the format's version."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.pipeline.actions import Action
from backend.pipeline.notation import format_action, parse_action
from backend.pipeline.program import Program
from backend.pipeline.shape import Shape

FORMAT: Literal["stageflow-program"] = "stageflow-program"
VERSION: Literal[1] = 1


@dataclass(frozen=True)
class _ProgramDocument:
    """`ranks`: one text per rank, its actions as tokens of `backend.pipeline.notation`."""

    format: Literal["stageflow-program"]
    version: Literal[1]
    schedule: str
    shape: Shape
    ranks: tuple[str, ...]


def write_program(program: Program) -> bytes:
    """{"format": "stageflow-program", "version": 1, "schedule", "shape", "ranks"}."""
    ranks = tuple(" ".join(map(format_action, actions)) for actions in program.ranks)
    document = _ProgramDocument(FORMAT, VERSION, program.schedule, program.shape, ranks)
    return to_json(_ProgramDocument, document)


def read_program(data: bytes | str) -> Program:
    """The program that `write_program` wrote, not yet verified. Raises `InvalidInput` naming
    the field, or the rank and the token."""
    document: _ProgramDocument = from_json(_ProgramDocument, data)
    shape = document.shape
    if len(document.ranks) != shape.num_ranks:
        raise InvalidInput(
            f"ranks: {len(document.ranks)} are written, the shape has {shape.num_ranks}"
        )
    ranks = tuple(tuple(_actions(rank, text)) for rank, text in enumerate(document.ranks))
    return Program.of(document.schedule, shape, ranks)


def _actions(rank: int, text: str) -> Iterator[Action]:
    for token in text.split():
        try:
            yield parse_action(token)
        except InvalidInput as fault:
            raise InvalidInput(f"ranks.{rank}: {fault}", fault.advice) from None
