"""Single changes of a program, at every place of it."""

from dataclasses import replace

from backend.pipeline.actions import (
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Collective,
    Compute,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)

BACK = (Backward, BackwardInput, BackwardWeight)


def places(program, *kinds):
    for rank, actions in enumerate(program.ranks):
        for index, action in enumerate(actions):
            if isinstance(action, kinds):
                yield rank, index, action


def is_back_of(other, action):
    back = isinstance(other, (*BACK, Recompute)) and other is not action
    return back and (other.stage, other.microbatch) == (action.stage, action.microbatch)


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
    for rank, index, action in places(program, Compute, Collective):
        yield splice(program, rank, index, replace(action, version=action.version + 1))
        if action.version:
            yield splice(program, rank, index, replace(action, version=action.version - 1))


def older_forward_and_backward(program):
    """Consistent, so that only the schedule's own rule can tell."""
    for rank, index, action in places(program, Forward):
        if action.version:
            older = splice(program, rank, index, replace(action, version=action.version - 1))
            for at, back in enumerate(program.ranks[rank]):
                if is_back_of(back, action):
                    older = splice(older, rank, at, replace(back, version=action.version - 1))
            yield older


def other_microbatch(program):
    for rank, index, action in places(program, Forward, Recompute, *BACK):
        yield splice(program, rank, index, replace(action, microbatch=action.microbatch + 1))


def on_another_rank(program):
    for rank, index, action in places(program, Compute, Collective):
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
    for rank, index, action in places(program, Collective):
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
            if is_back_of(other, action):
                yield exchange(program, rank, index, at)


def weights_before_the_inputs_half(program):
    for rank, index, action in places(program, BackwardInput):
        for at, other in enumerate(program.ranks[rank]):
            if isinstance(other, BackwardWeight) and other.microbatch == action.microbatch:
                yield exchange(program, rank, index, at)


def recomputed_after_its_backward(program):
    for rank, index, action in places(program, Recompute):
        for at, other in enumerate(program.ranks[rank]):
            if at > index and is_back_of(other, action) and not isinstance(other, BackwardWeight):
                late = splice(program, rank, at, other, action)
                yield splice(late, rank, index)


def recomputed_for_nothing(program):
    if not program.shape.recompute:
        for rank, index, action in places(program, Backward, BackwardInput):
            again = Recompute(action.stage, action.microbatch, action.version)
            yield splice(program, rank, index, again, action)


def halves_joined(program):
    """The inputs' half becomes a whole backward, and the weights' half stays."""
    for rank, index, action in places(program, BackwardInput):
        whole = Backward(action.stage, action.microbatch, action.version)
        yield splice(program, rank, index, whole)


def averaged_before_the_step(program):
    for rank, index, _ in places(program, Average):
        yield exchange(program, rank, index, index - 1)


def averaged_after_the_next_forward(program):
    for rank, index, action in places(program, Average):
        for at, other in enumerate(program.ranks[rank][index + 1 :], index + 1):
            if isinstance(other, Forward) and other.stage == action.stage:
                late = splice(program, rank, at, other, action)
                yield splice(late, rank, index)
                break


def backwards_before(program, rank, index):
    """Those of the stage that the action at `index` updates."""
    stage = program.ranks[rank][index].stage
    own = enumerate(program.ranks[rank][:index])
    return [i for i, a in own if isinstance(a, Backward | BackwardWeight) and a.stage == stage]


def step_before_its_last_backward(program):
    for rank, index, _ in places(program, Step):
        before = backwards_before(program, rank, index)
        if before:
            yield exchange(program, rank, before[-1], index)


def reduce_before_its_last_backward(program):
    for rank, index, _ in places(program, AllReduce):
        before = backwards_before(program, rank, index)
        if before:
            yield exchange(program, rank, before[-1], index)


def ranks_exchanged(program):
    for rank in range(1, len(program.ranks)):
        ranks = [*program.ranks]
        ranks[0], ranks[rank] = ranks[rank], ranks[0]
        yield replace(program, ranks=tuple(ranks))


KINDS = {
    "dropped forward": dropped(Forward),
    "dropped backward": dropped(*BACK),
    "dropped recomputation": dropped(Recompute),
    "dropped step": dropped(Step),
    "dropped send": dropped(Send),
    "dropped receive": dropped(Recv),
    "dropped all-reduce": dropped(AllReduce),
    "dropped averaging": dropped(Average),
    "doubled compute": doubled(Compute),
    "doubled message": doubled(Send, Recv),
    "doubled collective": doubled(Collective),
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
            weights_before_the_inputs_half,
            halves_joined,
            recomputed_after_its_backward,
            recomputed_for_nothing,
            averaged_before_the_step,
            averaged_after_the_next_forward,
            step_before_its_last_backward,
            reduce_before_its_last_backward,
            ranks_exchanged,
        )
    },
}
