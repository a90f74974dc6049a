import pytest

from backend.pipeline.actions import AllReduce, Recv, Send
from backend.pipeline.clock.waits import ProgramStuck
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from tests.oracles.lower import lower
from tests.oracles.program import unpack
from tests.oracles.replay import replay

HEAD = "schedule gpipe\nshape replicas=1,1 microbatches=1 batch=1 chunks=1\n"


def parse(text):
    return unpack(parse_program(text))


@pytest.fixture(params=["gpipe", "1f1b-flush", "pipedream", "forward-only"])
def program(request):
    return lower(schedule(request.param), Shape((2, 1, 3), 12, 6))


def test_every_action_is_played_once_and_in_its_ranks_order(program):
    seen = [0] * len(program.ranks)
    for played in replay(program):
        assert played.index == seen[played.rank]
        assert played.action == program.ranks[played.rank][played.index]
        seen[played.rank] += 1
    assert seen == [len(actions) for actions in program.ranks]


def test_nothing_is_played_before_what_it_waits_for(program):
    done = set()
    for played in replay(program):
        assert done.issuperset(played.waits)
        done.add((played.rank, played.index))


def test_a_receive_waits_for_its_own_send_and_other_actions_for_nobody(program):
    for played in replay(program):
        match played.action:
            case Recv(message, source):
                ((rank, index),) = played.waits
                assert rank == source
                assert program.ranks[rank][index] == Send(message, played.rank)
            case AllReduce(group=group):
                assert {rank for rank, _ in played.waits} == set(group)
            case _:
                assert played.waits == ()


def test_an_all_reduce_is_played_by_its_whole_group_at_once(program):
    actions = [played.action for played in replay(program)]
    for at, action in enumerate(actions):
        if isinstance(action, AllReduce):
            first = actions.index(action)
            assert first <= at < first + len(action.group)


def test_ranks_that_wait_for_each_other_are_named_where_they_stand():
    crossed = parse(HEAD + "0: <1:g1.0 0F0@0 >1:a0.0\n1: <0:a0.0 1F0@0 >0:g1.0\n")
    with pytest.raises(ProgramStuck, match=r"rank 0 at action 0 \(<1:g1.0\), rank 1") as caught:
        list(replay(crossed))
    assert caught.value.places == ((0, 0), (1, 0))


def test_a_rank_whose_group_never_comes_is_stuck_and_the_other_ends():
    alone = parse(HEAD + "0: 0F0@0 0R@1[0,1]\n1: 1F0@0\n")
    played = replay(alone)
    assert [next(played).rank, next(played).rank] == [0, 1]
    with pytest.raises(ProgramStuck) as caught:
        next(played)
    assert caught.value.places == ((0, 1),)


def test_equal_messages_are_matched_first_to_first():
    twice = parse(HEAD + "0: >1:a0.0 >1:a0.0\n1: <0:a0.0 <0:a0.0\n")
    assert [p.waits for p in replay(twice) if p.rank == 1] == [((0, 0),), ((0, 1),)]
