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
from backend.pipeline.exchange.text import format_program, parse_program
from backend.pipeline.lower import lower
from backend.pipeline.notation import format_action, parse_action
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.pipeline.shape import Shape

ACTIVATION, GRADIENT = Message(Flow.ACTIVATION, 0, 5), Message(Flow.GRADIENT, 1, 5)
TABLE = [
    (Forward(2, 5, 1), "2F5@1"),
    (Backward(2, 5, 1), "2B5@1"),
    (BackwardInput(2, 5, 1), "2I5@1"),
    (BackwardWeight(2, 5, 1), "2W5@1"),
    (Step(2, 3), "2S@3"),
    (AllReduce(2, (4, 5), 3), "2R@3[4,5]"),
    (Send(ACTIVATION, 1), ">1:a0.5"),
    (Recv(GRADIENT, 1), "<1:g1.5"),
]

counts = st.integers(0, 10**6)
messages = st.builds(Message, st.sampled_from(Flow), counts, counts)
actions = st.one_of(
    *(st.builds(k, counts, counts, counts) for k in (Forward, Backward)),
    *(st.builds(k, counts, counts, counts) for k in (BackwardInput, BackwardWeight)),
    st.builds(Step, counts, counts),
    st.builds(AllReduce, counts, st.lists(counts, min_size=1).map(tuple), counts),
    st.builds(Send, messages, counts),
    st.builds(Recv, messages, counts),
)


@pytest.mark.parametrize(("action", "text"), TABLE)
def test_each_action_has_one_token(action, text):
    assert format_action(action) == text
    assert parse_action(text) == action


@given(actions)
def test_any_action_comes_back(action):
    assert parse_action(format_action(action)) == action


@given(st.lists(st.lists(actions, max_size=5).map(tuple), min_size=2, max_size=2))
def test_any_program_comes_back_sound_or_not(ranks):
    program = Program.of("gpipe", Shape((1, 1), 4, 2), ranks)
    assert parse_program(format_program(program)) == program


@pytest.mark.parametrize("name", SCHEDULES)
def test_lowered_programs_come_back(name):
    program = lower(SCHEDULES[name], Shape((3, 1, 2), 12, 6))
    assert parse_program(format_program(program)) == program


def test_blank_lines_comments_and_spaces_do_not_matter():
    text = """
    # two ranks of nothing much
    schedule   gpipe
    shape replicas=1,1   microbatches=1 batch=1 chunks=1

    0: 0F0@0   # the first forward
    1:
    """
    assert parse_program(text) == Program.of("gpipe", Shape((1, 1), 1), ((Forward(0, 0),), ()))


@pytest.mark.parametrize(
    "token", ["", "2F5", "2X5@1", "F5@1", "2S3", "2R@3[]", ">1:x0.5", "-1F0@0"]
)
def test_a_token_that_is_no_action_is_refused(token):
    with pytest.raises(InvalidInput, match="is not an action"):
        parse_action(token)


GOOD = ["schedule gpipe", "shape replicas=1,1 microbatches=1 batch=1 chunks=1", "0: 0F0@0", "1:"]


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "plan gpipe", "line 1: 'plan gpipe' does not name a schedule"),
        (2, "shape 2x2", "line 2: 'shape 2x2' is not a shape"),
        (2, "shape replicas=1,2 microbatches=3 batch=1 chunks=1", "line 2: 3 microbatches cannot"),
        (3, "0: 0F0@0 0Q7 1F0@0", "line 3: '0Q7' is not an action"),
        (4, "2: 1F0@0", "line 4: '2:' where 1: should be"),
        (4, "", "1 rank lines, but the shape has 2 ranks"),
        (4, "1:\n2:", "3 rank lines, but the shape has 2 ranks"),
    ],
)
def test_a_bad_line_is_named(line, text, message):
    lines = [*GOOD]
    lines[line - 1] = text
    with pytest.raises(InvalidInput, match=message):
        parse_program("\n".join(lines))


@pytest.mark.parametrize("text", ["", "# nothing", "schedule gpipe"])
def test_a_text_that_ends_too_early_says_what_is_missing(text):
    with pytest.raises(InvalidInput, match="the text ends where this is needed"):
        parse_program(text)
