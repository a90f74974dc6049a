"""Programs as text, both ways: one line per rank, one token per action.

    schedule 1f1b-flush
    shape replicas=2,1 microbatches=4 batch=4 chunks=1
    0: 0F0@0 >2:a0.0 0F2@0 >2:a0.2 <2:g1.0 0B0@0 <2:g1.2 0B2@0 0R@1[0,1] 0S@1
    ...

The tokens are those of `backend.pipeline.notation`. The shape may also say advance=, pipelines=,
run-ahead=, recompute=1, apart=1, one-way=0,1, placement=v and shares=2:1, (per pipeline rank,
nothing for equal ones). Blank lines and what follows a # are skipped when reading.
"""

from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.actions import Action
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.notation import format_action, parse_action
from backend.pipeline.program import Program
from backend.pipeline.shape import Shape
from backend.pipeline.shares import Shares, shares_text

COUNTS = {
    "microbatches": "num_microbatches",
    "batch": "batch",
    "chunks": "chunks",
    "advance": "advance",
    "pipelines": "num_pipelines",
    "recompute": "recompute",
    "run-ahead": "run_ahead",
    "apart": "apart",
}
"""How the shape's fields besides the replicas are written."""
ALWAYS = ("microbatches", "batch", "chunks")
ONE_WAY, PLACEMENT, SHARES = "one-way", "placement", "shares"


def format_program(program: Program) -> str:
    """The text of a program, ending in a newline; `parse_program` reads it back."""
    lines = [f"schedule {program.schedule}", format_shape(program.shape)]
    for rank, actions in enumerate(program.ranks):
        lines.append(" ".join([f"{rank}:", *map(format_action, actions)]))
    return "\n".join(lines) + "\n"


def format_shape(shape: Shape) -> str:
    """The shape's line; what is as usual is left out."""
    usual = Shape((1,), 1)
    counts = [
        f"{name}={int(getattr(shape, field))}"
        for name, field in COUNTS.items()
        if name in ALWAYS or getattr(shape, field) != getattr(usual, field)
    ]
    counts += [f"{ONE_WAY}={_listed(shape.one_way)}"] if shape.one_way else []
    if shape.shares:
        counts.append(f"{SHARES}={','.join(shares_text(own) for own in shape.shares)}")
    is_usual = shape.placement is usual.placement
    counts += [] if is_usual else [f"{PLACEMENT}={shape.placement}"]
    return " ".join(["shape", f"replicas={_listed(shape.replicas)}", *counts])


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


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
    return Program.of(schedule, shape, ranks)


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
    head, *fields = line.split()
    named = dict(field.partition("=")[::2] for field in fields)
    try:
        if head != "shape" or len(named) < len(fields) or not set(ALWAYS) <= named.keys():
            raise ValueError
        replicas = _numbers(named.pop("replicas"))
        one_way = _numbers(named.pop(ONE_WAY)) if ONE_WAY in named else ()
        placement = Placement(named.pop(PLACEMENT, Placement.ROUND_ROBIN))
        shares = tuple(map(_shares, named.pop(SHARES).split(","))) if SHARES in named else ()
        counts = {COUNTS[name]: int(value) for name, value in named.items()}
    except (ValueError, KeyError):
        raise InvalidInput(f"line {number}: {line!r} is not a shape") from None
    try:
        recompute, apart = (bool(counts.pop(name, 0)) for name in ("recompute", "apart"))
        return Shape(
            replicas,
            recompute=recompute,
            apart=apart,
            one_way=one_way,
            placement=placement,
            shares=shares,
            kept_order=(),
            **counts,
        )
    except InvalidInput as fault:
        raise InvalidInput(f"line {number}: {fault}") from None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _shares(text: str) -> Shares:
    return tuple(map(int, text.split(":"))) if text else ()


def _parse_rank(rank: int, number: int, line: str) -> Iterator[Action]:
    head, *tokens = line.split()
    if head != f"{rank}:":
        raise InvalidInput(f"line {number}: {head!r} where {rank}: should be")
    for token in tokens:
        try:
            yield parse_action(token)
        except InvalidInput as fault:
            raise InvalidInput(f"line {number}: {fault}", advice=fault.advice) from None
