"""Orders as Megatron-LM and the zero-bubble schedules of Sea AI Lab write them, a line per rank.

Both are one batch of one pipeline. Megatron's numbers are chunks, counted from 1: a forward, or
with a minus a backward; microbatches come in turn, and chunks go round the ranks. Sea AI Lab's
cells are a kind and a microbatch (F0 B0 W0, or BW0 for a whole backward); small letters are the
second chunk of a V. It also draws them in time, as "F0-FB0-BW0-W..", which is read as well.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Compute, Forward
from backend.pipeline.chunk_placement import Placement, stage_at
from backend.pipeline.exchange.torch_csv import in_order
from backend.pipeline.program import Program

_NUMBERS = re.compile(r"[\s,\[\]0-9+-]+")
_CELL = re.compile(r"(BW|bw|[FBWfbw])([0-9]{1,9})(?:-*\1)?")
_BETWEEN = re.compile(r"[\s.,]+")


def is_megatron(text: str) -> bool:
    """Whether there is nothing but whole numbers."""
    return bool(text.strip()) and _NUMBERS.fullmatch(text) is not None


def read_megatron(text: str) -> Program:
    """The program in Megatron's order. Raises `InvalidInput` naming the line."""
    lines = _lines(text)
    return in_order([tuple(_in_turn(rank, line, len(lines))) for rank, line in enumerate(lines)])


def _in_turn(rank: int, line: str, size: int) -> Iterator[Compute]:
    seen = Counter[int]()
    for word in re.split(r"[\s,\[\]]+", line.strip(" \t,[]")):
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", word) or not int(word):
            raise InvalidInput(
                f"line {rank + 1}: {word!r} is not a chunk",
                advice="Chunks count from 1: 1 is a forward of the first, -1 its backward.",
            )
        chunk = int(word)
        stage = int(stage_at(Placement.ROUND_ROBIN, abs(chunk) - 1, rank, size))
        kind = Forward if chunk > 0 else Backward
        yield kind(stage, seen[chunk])
        seen[chunk] += 1


def is_sail(text: str) -> bool:
    """Whether it begins with a forward of a microbatch, or with time in which nothing is done."""
    return re.match(r"[\s.]*[Ff][0-9]", text) is not None


def read_sail(text: str) -> Program:
    """The program in the order of Sea AI Lab's text or drawing. Without any W a B is a whole
    backward. Raises `InvalidInput` naming the line and the cell."""
    lines = _lines(text)
    cells = [list(_cells(rank, line)) for rank, line in enumerate(lines)]
    halves = any(kind in "Ww" for line in cells for kind, _ in line)
    kinds = {
        "F": Forward,
        "B": BackwardInput if halves else Backward,
        "W": BackwardWeight,
        "BW": Backward,
    }
    rows: list[Sequence[Compute]] = []
    for rank, line in enumerate(cells):
        stages = rank, int(stage_at(Placement.V, 1, rank, len(lines)))
        rows.append([kinds[kind.upper()](stages[kind.islower()], at) for kind, at in line])
    return in_order(rows)


def _cells(rank: int, line: str) -> Iterator[tuple[str, int]]:
    place = 0
    while place < len(line):
        if gap := _BETWEEN.match(line, place):
            place = gap.end()
        elif cell := _CELL.match(line, place):
            yield cell[1], int(cell[2])
            place = cell.end()
        else:
            raise InvalidInput(
                f"line {rank + 1}: {line[place : place + 12]!r} is not a computation",
                advice="Cells look like F0, B0, W0 or BW0, or as drawn F0-F.",
            )


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
