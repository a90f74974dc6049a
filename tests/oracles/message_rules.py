"""The rules between ranks: sends meet receives in order, and groups meet in order."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from backend.pipeline.actions import Collective, Flow, Message, Recv, Send
from backend.pipeline.notation import format_action
from backend.pipeline.rules.faults import Fault, Rule
from tests.oracles.program import Program
from tests.oracles.replay import ProgramStuck, replay

Posts = list[tuple[int, Message]]
"""The sends, or the receives, of one end of a channel: (index, message)."""


@dataclass(slots=True)
class _Channel:
    sends: Posts = field(default_factory=list)
    receives: Posts = field(default_factory=list)


def channel_faults(program: Program) -> Iterator[Fault]:
    """Sends and receives that do not meet one to one, or in another order than sent.

    A channel is one flow between two ranks: activations and gradients never wait for each
    other, so a transport may order each by itself (tags, or one group per direction).
    """
    for (source, to, _), channel in _channels(program).items():
        yield from _unmet(program, source, channel.sends, channel.receives, "is never received")
        yield from _unmet(program, to, channel.receives, channel.sends, "is never sent")
        yield from _out_of_order(program, to, channel)


def group_faults(program: Program) -> Iterator[Fault]:
    """Ranks that come to the collectives of a group in another order than its first member."""
    met: defaultdict[tuple[int, ...], dict[int, list[tuple[int, Collective]]]] = defaultdict(dict)
    for rank, actions in enumerate(program.ranks):
        for index, action in enumerate(actions):
            if isinstance(action, Collective):
                met[action.group].setdefault(rank, []).append((index, action))
    for ranks in met.values():
        leader = min(ranks)
        for rank, own in ranks.items():
            for (index, mine), (_, other) in zip(own, ranks[leader], strict=False):
                if mine != other:
                    what = f"comes to another collective than rank {leader}"
                    yield fault(program, rank, index, Rule.GROUP, what)
                    break


def wait_faults(program: Program) -> Iterator[Fault]:
    """The actions at which ranks stand for ever, if the program cannot run to its end."""
    try:
        for _ in replay(program):
            pass
    except ProgramStuck as stuck:
        for rank, index in stuck.places:
            yield fault(program, rank, index, Rule.WAIT, "waits for ever")


def _channels(program: Program) -> dict[tuple[int, int, Flow], _Channel]:
    channels: defaultdict[tuple[int, int, Flow], _Channel] = defaultdict(_Channel)
    for rank, actions in enumerate(program.ranks):
        for index, action in enumerate(actions):
            if isinstance(action, Send):
                posts = channels[rank, action.to, action.message.flow].sends
                posts.append((index, action.message))
            elif isinstance(action, Recv):
                posts = channels[action.source, rank, action.message.flow].receives
                posts.append((index, action.message))
    return channels


def _unmet(program: Program, rank: int, posts: Posts, others: Posts, what: str) -> Iterator[Fault]:
    left = Counter(message for _, message in others)
    for index, message in posts:
        left[message] -= 1
        if left[message] < 0:
            yield fault(program, rank, index, Rule.MESSAGE, what)


def _out_of_order(program: Program, to: int, channel: _Channel) -> Iterator[Fault]:
    met = {message for _, message in channel.sends} & {m for _, m in channel.receives}
    sent = [message for _, message in channel.sends if message in met]
    received = [post for post in channel.receives if post[1] in met]
    for (index, message), first in zip(received, sent, strict=False):
        if message != first:
            yield fault(program, to, index, Rule.MESSAGE, "overtakes what was sent before it")
            return


def fault(program: Program, rank: int, index: int | None, rule: Rule, what: str) -> Fault:
    """A fault whose text names the rank, the action and what is wrong with it."""
    if index is None:
        return Fault(rank, None, rule, f"rank {rank} {what}")
    name = format_action(program.ranks[rank][index])
    return Fault(rank, index, rule, f"rank {rank}, action {index} ({name}) {what}")
