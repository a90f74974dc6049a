"""What can be wrong with a program: one value per broken rule, readable as a sentence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from backend.pipeline.kinds import Ints
from backend.pipeline.notation import format_action
from backend.pipeline.program import Program


class Rule(StrEnum):
    """The rules of a sound program, by what each protects."""

    RANK = "every action stands on the rank that it belongs to"
    ONCE = "everything runs once"
    ORDER = "nothing runs before what it needs"
    VERSION = "a version exists when it is read, and a backward reads its forward's"
    UPDATE = "one update applies each batch or round"
    GROUP = "a group reduces the same gradients in the same order"
    MESSAGE = "every send has one receive, first in, first out per channel"
    BOUND = "a rank holds no more than its schedule promises"
    WAIT = "no rank waits for ever"


@dataclass(frozen=True, slots=True)
class Fault:
    """`rule` is broken by action `index` of `rank` (None: by what is missing there)."""

    rank: int
    index: int | None
    rule: Rule
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Broken:
    """`rule` is broken by some rows; `what` ends the sentence about one of them."""

    rule: Rule
    rows: Ints
    what: str | Callable[[int], str]


def missing(rank: int, rule: Rule, what: str) -> Fault:
    """`rule` is broken by what `rank` does not do."""
    return Fault(rank, None, rule, f"rank {rank} {what}")


def said(program: Program, found: Iterable[Broken | Fault]) -> list[Fault]:
    """A sentence per row that breaks a rule, by rank and index; what is missing comes after."""
    faults: list[Fault] = []
    for one in found:
        if isinstance(one, Fault):
            faults.append(one)
        else:
            faults += [_fault(program, row, one) for row in one.rows.tolist()]
    faults.sort(key=lambda fault: (fault.rank, fault.index is None, fault.index or 0))
    return faults


def _fault(program: Program, row: int, broken: Broken) -> Fault:
    rank, index = program.place(row)
    name = format_action(program.rows.action(row))
    what = broken.what if isinstance(broken.what, str) else broken.what(row)
    return Fault(rank, index, broken.rule, f"rank {rank}, action {index} ({name}) {what}")
