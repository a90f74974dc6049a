"""Every kind of action has its row, and every reader of the table finds what it needs there."""

from contextlib import suppress
from itertools import product
from typing import get_args

import pytest

from app.charts import palette
from app.charts.bars import KINDS
from backend.errors import InvalidInput
from backend.pipeline.actions import Action, Flow, Message, Recv, Send
from backend.pipeline.kinds import FACTS, Form, Kind, kind, kind_of
from backend.pipeline.lower import lower
from backend.pipeline.notation import format_action, parse_action
from backend.pipeline.program import Program
from backend.pipeline.rows import Rows
from backend.pipeline.schedules.catalog import training_schedules
from backend.pipeline.shape import Shape
from backend.pipeline.verify import verify

EVERY = pytest.mark.parametrize("member", Kind, ids=lambda member: member.name.lower())


def example(member):
    facts = FACTS[member]
    if facts.form in (Form.SEND, Form.RECV):
        return facts.action(Message(facts.flow, 2, 5), 3)
    if facts.form is Form.COLLECTIVE:
        return facts.action(2, (4, 5), 3)
    return facts.action(2, 5, 1) if facts.has_microbatch else facts.action(2, 3)


@EVERY
def test_a_kind_goes_through_columns_and_text_and_comes_back(member):
    action = example(member)
    assert kind_of(action) is member
    assert Rows.of([action]).action(0) == action
    assert parse_action(format_action(action)) == action


@EVERY
def test_a_kind_has_a_word_a_colour_and_a_letter(member):
    facts = FACTS[member]
    assert kind(example(member)) == facts.word
    assert facts.word in palette.COLOURS
    assert facts.letter in KINDS


def test_the_table_has_every_action_and_every_member_once():
    assert {facts.action for facts in FACTS.values()} == set(get_args(Action))
    assert list(FACTS) == list(Kind)
    assert len({example(member) for member in Kind}) == len(Kind)


@EVERY
def test_a_kind_is_in_some_program_and_the_verifier_misses_it_there(member):
    program = next(one for one in programs() if (one.rows.kind == member).any())
    assert not verify(program)
    ranks = [[a for a in actions if kind_of(a) is not member] for actions in program.ranks]
    assert verify(Program.of(program.schedule, program.shape, ranks))


def programs():
    """Of every schedule that trains, on shapes that call for every kind between them."""
    shapes = [
        Shape((2, 1), 4, 4, recompute=True),
        Shape((1, 1), 8, 4, num_pipelines=2),
    ]
    for member, shape in product(training_schedules(), shapes):
        with suppress(InvalidInput):
            yield lower(member, shape)


def test_messages_are_told_apart_by_what_they_carry():
    flows = {kind_of(Send(Message(flow, 0, 0), 1)) for flow in Flow}
    assert flows == {Kind.SEND_ACTIVATION, Kind.SEND_GRADIENT}
    assert kind_of(Recv(Message(Flow.GRADIENT, 1, 0), 1)) is Kind.RECV_GRADIENT
