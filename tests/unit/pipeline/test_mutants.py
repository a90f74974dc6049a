"""Every single mutation, at every place of small valid programs, is caught by the verifier."""

from dataclasses import replace

import pytest

from backend.pipeline.actions import AllReduce, Backward, Compute, Forward, Recv, Send, Step
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.pipeline.shape import Shape
from backend.pipeline.verify import verify

SHAPES = [
    Shape((1,), 4, 2),
    Shape((1, 1), 4, 4),
    Shape((1, 1, 1), 4, 2),
    Shape((2, 1), 4, 4),
    Shape((1, 2), 4, 2),
    Shape((3, 1, 2), 6, 6),
]


def places(program, *kinds):
    for rank, actions in enumerate(program.ranks):
        for index, action in enumerate(actions):
            if isinstance(action, kinds):
                yield rank, index, action


def put(program, rank, actions):
    ranks = [*program.ranks]
    ranks[rank] = tuple(actions)
    return replace(program, ranks=tuple(ranks))


def splice(program, rank, index, *new, gone=1):
    actions = program.ranks[rank]
    return put(program, rank, (*actions[:index], *new, *actions[index + gone :]))


def exchange(program, rank, one, other):
    actions = [*program.ranks[rank]]
    actions[one], actions[other] = actions[other], actions[one]
    return put(program, rank, actions)


def dropped(*kinds):
    def mutants(program):
        for rank, index, _ in places(program, *kinds):
            yield splice(program, rank, index)

    return mutants


def doubled(*kinds):
    def mutants(program):
        for rank, index, action in places(program, *kinds):
            yield splice(program, rank, index, action, action)

    return mutants


def other_version(program):
    for rank, index, action in places(program, Compute, AllReduce):
        yield splice(program, rank, index, replace(action, version=action.version + 1))
        if action.version:
            yield splice(program, rank, index, replace(action, version=action.version - 1))


def older_forward_and_backward(program):
    """Consistent, so that only the schedule's own rule can tell."""
    for rank, index, action in places(program, Forward):
        if action.version:
            older = splice(program, rank, index, replace(action, version=action.version - 1))
            for _, at, back in places(program, Backward):
                if (back.stage, back.microbatch) == (action.stage, action.microbatch):
                    older = splice(older, rank, at, replace(back, version=back.version - 1))
            yield older


def other_microbatch(program):
    for rank, index, action in places(program, Forward, Backward):
        yield splice(program, rank, index, replace(action, microbatch=action.microbatch + 1))


def on_another_rank(program):
    for rank, index, action in places(program, Compute, AllReduce):
        for other in range(len(program.ranks)):
            if other != rank:
                moved = splice(program, rank, index)
                yield put(moved, other, (*moved.ranks[other], action))


def to_another_peer(program):
    for rank, index, action in places(program, Send, Recv):
        peer = "to" if isinstance(action, Send) else "source"
        for other in range(len(program.ranks)):
            if other != getattr(action, peer):
                yield splice(program, rank, index, replace(action, **{peer: other}))


def other_group(program):
    for rank, index, action in places(program, AllReduce):
        yield splice(program, rank, index, replace(action, group=action.group[1:]))
        yield splice(program, rank, index, replace(action, group=(*action.group, 99)))


def receive_after_its_consumer(program):
    for rank, index, _ in places(program, Recv):
        yield exchange(program, rank, index, index + 1)


def send_before_its_producer(program):
    for rank, index, _ in places(program, Send):
        yield exchange(program, rank, index, index - 1)


def receives_exchanged(program):
    """Two receives of one channel change places."""
    for rank, index, action in places(program, Recv):
        for at, other in enumerate(program.ranks[rank][index + 1 :], index + 1):
            if isinstance(other, Recv) and other.source == action.source:
                if other.message.flow == action.message.flow:
                    yield exchange(program, rank, index, at)
                break


def send_after_the_next_of_its_channel(program):
    """Its data is there, but it is overtaken."""
    for rank, index, action in places(program, Send):
        for at, other in enumerate(program.ranks[rank][index + 1 :], index + 1):
            if isinstance(other, Send) and other.to == action.to:
                if other.message.flow == action.message.flow:
                    late = splice(program, rank, at, other, action)
                    yield splice(late, rank, index)
                break


def backward_before_its_forward(program):
    for rank, index, action in places(program, Forward):
        for at, other in enumerate(program.ranks[rank]):
            if isinstance(other, Backward) and other.microbatch == action.microbatch:
                yield exchange(program, rank, index, at)


def step_before_its_last_backward(program):
    for rank, index, _ in places(program, Step):
        before = [i for r, i, _ in places(program, Backward) if r == rank and i < index]
        if before:
            yield exchange(program, rank, before[-1], index)


def reduce_before_its_last_backward(program):
    for rank, index, _ in places(program, AllReduce):
        before = [i for r, i, _ in places(program, Backward) if r == rank and i < index]
        if before:
            yield exchange(program, rank, before[-1], index)


def ranks_exchanged(program):
    for rank in range(1, len(program.ranks)):
        ranks = [*program.ranks]
        ranks[0], ranks[rank] = ranks[rank], ranks[0]
        yield replace(program, ranks=tuple(ranks))


KINDS = {
    "dropped forward": dropped(Forward),
    "dropped backward": dropped(Backward),
    "dropped step": dropped(Step),
    "dropped send": dropped(Send),
    "dropped receive": dropped(Recv),
    "dropped all-reduce": dropped(AllReduce),
    "doubled compute": doubled(Forward, Backward, Step),
    "doubled message": doubled(Send, Recv),
    "doubled all-reduce": doubled(AllReduce),
    **{
        mutants.__name__.replace("_", " "): mutants
        for mutants in (
            other_version,
            older_forward_and_backward,
            other_microbatch,
            on_another_rank,
            to_another_peer,
            other_group,
            receive_after_its_consumer,
            send_before_its_producer,
            receives_exchanged,
            send_after_the_next_of_its_channel,
            backward_before_its_forward,
            step_before_its_last_backward,
            reduce_before_its_last_backward,
            ranks_exchanged,
        )
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_mutant_is_caught(kind):
    programs = [lower(member, shape) for member in SCHEDULES.values() for shape in SHAPES]
    mutants = [mutant for program in programs for mutant in KINDS[kind](program)]
    assert len(mutants) >= 20
    assert not [mutant for mutant in mutants if not verify(mutant)]
