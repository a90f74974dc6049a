"""Programs with one thing wrong, and the rule that each of them breaks."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.actions import (
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
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.rules.faults import Rule
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.flush import FLUSH
from backend.pipeline.schedules.gpipe import GPIPE
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.pipeline.shape import Shape
from backend.pipeline.verify import ProgramUnsound, check, verify
from tests.oracles.order import order

HEAD = "schedule {}\nshape replicas={} microbatches={} batch={} chunks=1\n"


def in_order_of(rule):
    return lambda coordinates, shape: order(rule, coordinates)


def faults(*ranks, name="gpipe", replicas="1", microbatches=1, batch=1):
    lines = "\n".join(f"{rank}: {line}" for rank, line in enumerate(ranks))
    head = HEAD.format(name, replicas, microbatches, batch)
    return [(f.rank, f.index, f.rule) for f in verify(parse_program(head + lines))]


def test_what_recomputes_does_so_once_between_forward_and_backward():
    head = "schedule gpipe\nshape replicas=1 microbatches=1 batch=1 chunks=1 recompute=1\n0: "

    def found(line):
        return [(f.index, f.rule) for f in verify(parse_program(head + line))]

    assert found("0F0@0 0C0@0 0B0@0 0S@1") == []
    assert found("0F0@0 0B0@0 0S@1") == [(1, Rule.ORDER)]
    assert found("0C0@0 0F0@0 0B0@0 0S@1") == [(0, Rule.ORDER)]
    assert found("0F0@0 0C0@0 0C0@0 0B0@0 0S@1") == [(2, Rule.ONCE)]
    assert found("0F0@0 0C0@1 0B0@0 0S@1") == [(1, Rule.VERSION)]
    assert faults("0F0@0 0C0@0 0B0@0 0S@1") == [(0, 1, Rule.ONCE)]


def test_pipelines_average_after_each_step():
    head = "schedule gpipe\nshape replicas=1 microbatches=2 batch=1 chunks=1 pipelines=2\n"
    good = "0: 0F0@0 0B0@0 0S@1 0A@1[0,1]\n1: 0F1@0 0B1@0 0S@1 0A@1[0,1]"

    def found(text):
        return {(f.rank, f.index, f.rule) for f in verify(parse_program(head + text))}

    assert found(good) == set()
    assert (0, None, Rule.GROUP) in found(good.replace("0S@1 0A@1[0,1]\n", "0S@1\n"))
    assert (0, 2, Rule.GROUP) in found(good.replace("0S@1 0A@1[0,1]\n", "0A@1[0,1] 0S@1\n"))
    assert (1, 3, Rule.GROUP) in found(good.replace("0S@1 0A@1[0,1]", "0S@1 0A@1[1]", 2))
    assert faults("0F0@0 0B0@0 0S@1 0A@1[0]") == [(0, 3, Rule.GROUP)]


def test_only_the_naive_schedule_may_mix_versions():
    """The same actions, called by two names."""
    naive = lower(schedule("pipedream-naive"), Shape((1, 1), 4))
    assert verify(naive) == ()
    renamed = verify(replace(naive, schedule="pipedream"))
    assert {fault.rule for fault in renamed} == {Rule.VERSION}
    assert "differs from its forward, which read 0" in str(renamed[0])
    stashed = replace(lower(schedule("pipedream"), naive.shape), schedule="pipedream-naive")
    assert verify(stashed)


def test_the_smallest_sound_programs():
    assert faults("0F0@0 0B0@0 0S@1") == []
    assert faults("0F0@0 0I0@0 0W0@0 0S@1") == []
    assert faults("0F0@0", name="forward-only") == []


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("0B0@0 0S@1", {(0, 0, Rule.ORDER), (0, None, Rule.ONCE)}),
        ("0F0@0 0F0@0 0B0@0 0S@1", {(0, 1, Rule.ONCE)}),
        ("0F0@0 0B0@0 0B0@0 0S@1", {(0, 2, Rule.ONCE)}),
        ("0F0@0 0I0@0 0S@1", {(0, 2, Rule.UPDATE), (0, None, Rule.ONCE)}),
        ("0F0@0 0W0@0 0I0@0 0S@1", {(0, 1, Rule.ORDER)}),
        ("0F0@0 0I0@0 0I0@0 0W0@0 0S@1", {(0, 2, Rule.ONCE)}),
        ("0F0@0 0B0@0 0W0@0 0S@1", {(0, 2, Rule.ONCE)}),
        ("0F0@0 0S@1 0B0@0", {(0, 1, Rule.UPDATE)}),
        ("0F0@0 0B0@0", {(0, None, Rule.UPDATE)}),
        ("0F0@0 0B0@0 0S@1 0S@2", {(0, 3, Rule.UPDATE)}),
        ("0F0@0 0B0@0 0S@2", {(0, 2, Rule.VERSION)}),
        ("0F0@1 0B0@1 0S@1", {(0, 0, Rule.VERSION)}),
        ("0F0@0 0B0@1 0S@1", {(0, 1, Rule.VERSION)}),
        ("0F0@0 0B0@0 0S@1 3S@1", {(0, 3, Rule.RANK)}),
        ("0F0@0 0B0@0 0S@1 0F1@1", {(0, 3, Rule.RANK)}),
        ("0F0@0 0B0@0 0R@1[0,1] 0S@1", {(0, 2, Rule.GROUP), (0, 2, Rule.WAIT)}),
        ("0F0@0 >0:a0.0 0B0@0 0S@1", {(0, 1, Rule.ORDER), (0, 1, Rule.MESSAGE)}),
        ("0F0@0 <0:a0.0 0B0@0 0S@1", {(0, 1, Rule.RANK), (0, 1, Rule.MESSAGE)}),
    ],
)
def test_each_rule_of_one_rank(line, broken):
    assert broken <= set(faults(line))


def test_ranks_that_wait_for_each_other():
    first = "<1:g1.0 0F0@0 >1:a0.0 0B0@0 0S@1"
    second = "<0:a0.0 1F0@0 1B0@0 >0:g1.0 1S@1"
    assert faults(first, second, replicas="1,1") == [(0, 0, Rule.WAIT), (1, 0, Rule.WAIT)]


def test_a_send_that_overtakes_another():
    first = "0F0@0 0F1@0 >1:a0.1 >1:a0.0 <1:g1.0 0B0@0 <1:g1.1 0B1@0 0S@1"
    second = "<0:a0.0 1F0@0 <0:a0.1 1F1@0 1B0@0 >0:g1.0 1B1@0 >0:g1.1 1S@1"
    assert faults(first, second, replicas="1,1", microbatches=2, batch=2) == [(1, 0, Rule.MESSAGE)]


def test_groups_that_reduce_in_another_order():
    ranks = ["0F0@0 0B0@0 0R@1[0,1] 0S@1 0R@2[0,1] 0S@2"]
    ranks.append("0F1@1 0B1@1 0R@2[0,1] 0S@1 0R@1[0,1] 0S@2")
    broken = faults(*ranks, replicas="2", microbatches=2)
    assert (1, 2, Rule.GROUP) in broken
    assert {(0, 2, Rule.WAIT), (1, 2, Rule.WAIT)} <= set(broken)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (
            replace(FLUSH, warm_up=GPIPE.warm_up),
            "up to 6 forwards in flight; 1f1b-flush promises 3",
        ),
        (
            replace(PIPEDREAM, order=in_order_of(GPIPE)),
            "applies microbatches 0, 1, 2, 3, 4, 5 instead of 0",
        ),
        (replace(GPIPE, order=in_order_of(PIPEDREAM)), "is update 2 of 1"),
    ],
)
def test_an_order_is_held_to_the_promises_of_the_schedule_that_it_is_named_after(wrong, what):
    texts = [fault.text for fault in verify(lower(wrong, Shape((1, 1, 1), 6, 6)))]
    assert any(what in text for text in texts)


def test_versions_beyond_the_stash_are_counted():
    """PipeDream with one forward more in flight than there are pipeline ranks."""

    def ahead(coordinates, shape):
        return order(
            PIPEDREAM,
            Shape((1,) * (shape.pipeline_size + 1), 8).coordinates[coordinates.pipeline_rank],
        )

    broken = verify(lower(replace(PIPEDREAM, order=ahead), Shape((1, 1), 8)))
    assert {fault.rule for fault in broken} == {Rule.BOUND}
    assert "up to 3 versions of stage 0; pipedream promises 2" in " ".join(map(str, broken))


def test_a_wrong_number_of_ranks_is_said_and_nothing_else():
    program = lower(schedule("gpipe"), Shape((1, 1), 2))
    (fault,) = verify(Program.of("gpipe", program.shape, program.ranks[:1]))
    assert str(fault) == "there are 1 programs, but the shape has 2 ranks"


def test_a_fault_is_a_sentence_with_rank_action_and_reason():
    program = parse_program(HEAD.format("gpipe", "1", 1, 1) + "0: 0F0@0 0B0@0 0S@2")
    (fault,) = verify(program)
    assert str(fault) == "rank 0, action 2 (0S@2) should make version 1"


def test_check_returns_the_sound_and_refuses_the_unsound():
    program = lower(schedule("gpipe"), Shape((1, 1), 2, 2))
    assert check(program) is program
    with pytest.raises(ProgramUnsound, match=re.escape("rank 0 never runs 0F0")) as caught:
        check(Program.of("gpipe", program.shape, ((), ())))
    assert len(caught.value.faults) > 1
    assert "stageflow program import FILE" in caught.value.advice
    assert f"(and {len(caught.value.faults) - 1} more)" in str(caught.value)


def test_a_shape_that_claims_far_more_than_there_is_costs_nothing():
    program = lower(schedule("gpipe"), Shape((1, 1), 2, 2))
    many = 10**4000  # of which Python writes no product
    for shape in (Shape((1, 1), many), Shape((1, 1), many, chunks=many)):
        (found,) = verify(replace(program, shape=shape))
        assert "that the shape claims" in found.text


def test_a_schedule_that_nobody_knows_is_bad_input():
    with pytest.raises(InvalidInput, match="no schedule 'mine'"):
        verify(replace(lower(schedule("gpipe"), Shape((1,), 1)), schedule="mine"))


small = st.integers(0, 3)
messages = st.builds(Message, st.sampled_from(Flow), small, small)
actions = st.one_of(
    *(st.builds(k, small, small, small) for k in (Forward, Backward)),
    *(st.builds(k, small, small, small) for k in (BackwardInput, BackwardWeight)),
    st.builds(Step, small, small),
    st.builds(AllReduce, small, st.lists(small, min_size=1, max_size=3).map(tuple), small),
    st.builds(Send, messages, small),
    st.builds(Recv, messages, small),
)


@given(st.sampled_from(["gpipe", "pipedream"]), st.lists(st.lists(actions), min_size=3, max_size=3))
def test_any_nonsense_is_answered_with_faults_and_never_with_a_crash(name, ranks):
    assert verify(Program.of(name, Shape((2, 1), 2), ranks))
