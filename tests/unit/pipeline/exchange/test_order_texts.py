"""Orders of Megatron-LM and of Sea AI Lab: those of schedules that are ours too."""

from itertools import pairwise

import pytest

from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Forward
from backend.pipeline.exchange.forms import read_any
from backend.pipeline.exchange.torch_csv import write_rows
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.verify import verify

LETTERS = {Forward: "F", Backward: "BW", BackwardInput: "B", BackwardWeight: "W"}


def made(name: str, ranks: int, microbatches: int, chunks: int = 1) -> Program:
    rule = schedule(name)
    shape = Shape(
        (1,) * ranks, microbatches, microbatches, chunks, placement=rule.placement_of(chunks)
    )
    return lower(rule, shape)


def computes(program: Program) -> list[list[object]]:
    return [[a for a in rank if type(a) in LETTERS] for rank in program.ranks]


def megatron(ranks: int, microbatches: int, chunks: int) -> str:
    """Its interleaved order by its rule: groups of as many microbatches as ranks, chunk by chunk;
    backwards in the same order of groups, with the chunks from the last on."""
    groups = range(0, microbatches, ranks)
    forwards = [
        chunk + 1
        for start in groups
        for chunk in range(chunks)
        for _ in range(start, min(start + ranks, microbatches))
    ]
    backwards = [one - chunks - 1 for one in forwards]
    lines = []
    for rank in range(ranks):
        warm_up = min((ranks - rank - 1) * 2 + (chunks - 1) * ranks, len(forwards))
        order = forwards[:warm_up]
        for number, one in enumerate(forwards[warm_up:]):
            order += [one, backwards[number]]
        order += backwards[len(forwards) - warm_up :]
        lines.append(" ".join(map(str, order)))
    return "\n".join(lines)


@pytest.mark.parametrize(("ranks", "microbatches", "chunks"), [(2, 4, 2), (4, 8, 2), (3, 6, 3)])
def test_megatrons_interleaved_order_is_ours(ranks, microbatches, chunks):
    found = read_any(megatron(ranks, microbatches, chunks).encode())
    assert not verify(found)
    assert computes(found) == computes(made("interleaved", ranks, microbatches, chunks))


def test_an_order_as_megatron_documents_it():
    """Two ranks, two chunks, five microbatches, the second group short of one."""
    first = "1 1 1 2 2 2 -2 1 -2 1 -2 2 -1 2 -1 -1 -2 -2 -1 -1"
    second = "[1, 1, 1, 2, -2, 2, -2, 2, -2, 1, -1, 1, -1, 2, -1, 2, -2, -2, -1, -1]"
    found = read_any(f"{first}\n{second}\n".encode())
    assert not verify(found)
    assert found.shape.num_microbatches == 5
    assert write_rows(found.ranks).startswith("0F0,0F1,0F2,2F0,2F1,2F2,2B0,0F3,")


@pytest.mark.parametrize("name", ["zb-h1", "1f1b-flush", "gpipe"])
def test_sea_ai_labs_text_is_read(name):
    program = made(name, 3, 6)
    text = "\n".join(
        " ".join(f"{LETTERS[type(a)]}{a.microbatch}" for a in rank) for rank in computes(program)
    )
    found = read_any(text.encode())
    assert not verify(found)
    assert computes(found) == computes(program)


@pytest.mark.parametrize("name", ["zb-v", "v-half"])
def test_sea_ai_labs_drawing_of_a_v_is_read(name):
    program = made(name, 4, 12, 2)
    lines = []
    for rank in computes(program):
        line = "..."
        for one, other in pairwise([*rank, None]):
            letter = LETTERS[type(one)]
            letter = letter.lower() if one.stage >= 4 else letter
            line += f"{letter}{one.microbatch}-{letter}" + (".." if other else "")
        lines.append(line)
    found = read_any("\n".join(lines).encode())
    assert not verify(found)
    assert computes(found) == computes(program)


def test_a_b_without_any_w_is_a_whole_backward():
    found = read_any(b"F0 F1 B0 B1\nF0 B0 F1 B1")
    assert not verify(found)
    assert Backward(0, 1) in found.ranks[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 1 0 -1", "line 1: '0' is not a chunk"),
        ("1 2 -2 -1\n1 2 - -1", "line 2: '-' is not a chunk"),
        ("F0 B0\nF0 X1", "line 2: 'X1' is not a computation"),
    ],
)
def test_what_is_no_order_is_said(text, said):
    with pytest.raises(InvalidInput, match=said):
        read_any(text.encode())


def test_a_stage_that_is_missing_is_a_fault():
    assert verify(read_any(b"1 -1\n2 -2"))
