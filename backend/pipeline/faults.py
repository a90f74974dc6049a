"""What can be wrong with a program: one value per broken rule, readable as a sentence."""

from dataclasses import dataclass
from enum import StrEnum

from backend.pipeline.notation import format_action
from backend.pipeline.program import Program


class Rule(StrEnum):
    """The rules of a sound program, by what each protects."""

    SEAT = "every action stands on the rank that it belongs to"
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


def fault(program: Program, rank: int, index: int | None, rule: Rule, what: str) -> Fault:
    """A fault whose text names the rank, the action and what is wrong with it."""
    if index is None:
        return Fault(rank, None, rule, f"rank {rank} {what}")
    name = format_action(program.ranks[rank][index])
    return Fault(rank, index, rule, f"rank {rank}, action {index} ({name}) {what}")
