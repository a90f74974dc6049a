"""The rules between ranks that send and receive: one send, one receive, in order."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from backend.pipeline.clock.waits import coded, message_of, sorting
from backend.pipeline.kinds import FLOW, Bools, Ints, Is
from backend.pipeline.placement import rank_of
from backend.pipeline.rules.faults import Broken, Fault, Rule, missing
from backend.pipeline.rules.places import NOWHERE, Places


def messages(at: Places) -> Iterator[Broken | Fault]:
    """ORDER, ONCE and MESSAGE within a rank: a send after what makes the message, a compute after
    what brings it, each once, and none forgotten."""
    shape, made, used = at.shape, at.made_by, at.used_by
    sends, sent_message = at.messages(Is.SEND)
    recvs, received_message = at.messages(Is.RECV)
    sent, received = _first(sends, sent_message, made), _first(recvs, received_message, made)
    yield _again(sends, sent[sent_message], "is sent a second time")
    yield _again(recvs, received[received_message], "is received a second time")
    producer = made[sent_message]
    unmade = sends[(producer == NOWHERE) | (producer > sends)]
    yield Broken(Rule.ORDER, unmade, "sends what is not made yet")
    consumer, apart = _consumers(at)
    brought = np.where(apart, received, made)
    hungry = (used != NOWHERE) & ((brought == NOWHERE) | (brought > used))
    needed = {int(used[m]): at.message_name(m) for m in np.flatnonzero(hungry).tolist()}
    rows = np.array(sorted(needed), np.int64)
    yield Broken(Rule.ORDER, rows, lambda row: f"needs the {needed[row]}, which is not here")
    forgotten = apart & (made != NOWHERE) & (sent == NOWHERE)
    for message in np.flatnonzero(forgotten).tolist():
        stage, microbatch = divmod(message, shape.num_microbatches)
        rank = shape.rank_of(stage % shape.num_stages, microbatch)
        what = f"never sends rank {consumer[message]} the {at.message_name(message)}"
        yield missing(rank, Rule.MESSAGE, what)


def _first(rows: Ints, message: Ints, like: Ints) -> Ints:
    """Per message the first of `rows` that is about it."""
    found = np.full(len(like), NOWHERE)
    found[message[::-1]] = rows[::-1]
    return found


def _again(rows: Ints, first: Ints, what: str) -> Broken:
    return Broken(Rule.ONCE, rows[first != rows], what)


def _consumers(at: Places) -> tuple[Ints, Bools]:
    """Per message the rank that needs it, and whether that is another one than makes it; False
    where no stage needs it."""
    shape = at.shape
    every = np.arange(shape.num_stages * shape.num_microbatches)
    stage, microbatch = np.divmod(every, shape.num_microbatches)
    here = rank_of(shape, stage, microbatch)
    ahead, behind = np.roll(here, -shape.num_microbatches), np.roll(here, shape.num_microbatches)
    consumer = np.concatenate((ahead, behind))
    last = shape.num_stages - 1
    crosses = np.concatenate((stage < last, (stage > 0) & ~shape.is_one_way[stage - 1]))
    return consumer, crosses & (consumer != np.concatenate((here, here)))


def channels(at: Places) -> Iterator[Broken]:
    """MESSAGE between ranks: sends and receives of a channel meet one to one, in order.

    A channel is one flow between two ranks: activations and gradients never wait for each
    other, so a transport may order each by itself (tags, or one group per direction).
    """
    program, rows, rank = at.program, at.program.rows, at.program.rank
    send, recv = rows.are(Is.SEND), rows.are(Is.RECV)
    both = send | recv
    source, to = np.where(send, rank, rows.peer)[both], np.where(send, rows.peer, rank)[both]
    columns = rows.at(both)
    if at.placed[both].all():
        ranks = program.num_ranks
        channel = (source * ranks + to) * 2 + FLOW[columns.kind]
        message = message_of(columns, at.shape.num_stages, at.shape.num_microbatches)
    else:
        flow = FLOW[columns.kind]
        channel = coded(source, to, flow)
        message = coded(flow, columns.stage, columns.microbatch)
    places, sending = np.flatnonzero(both), send[both]
    out, into = _by_channel(channel, sending), _by_channel(channel, ~sending)
    if all(np.array_equal(c[out], c[into]) for c in (channel, message)):
        return
    for one in np.unique(channel).tolist():
        posted, taken = (pick[channel[pick] == one] for pick in (out, into))
        if not np.array_equal(message[posted], message[taken]):
            yield from _unlike(places[posted], message[posted], places[taken], message[taken])


def _by_channel(channel: Ints, mask: Bools) -> Ints:
    pick = np.flatnonzero(mask)
    return pick[sorting(channel[pick])]


def _unlike(sends: Ints, posted: Ints, receives: Ints, taken: Ints) -> Iterator[Broken]:
    """What is wrong on one channel."""
    yield _unmet(sends, posted, taken, "is never received")
    yield _unmet(receives, taken, posted, "is never sent")
    met = np.intersect1d(posted, taken)
    first, second = posted[np.isin(posted, met)], taken[np.isin(taken, met)]
    both = min(len(first), len(second))
    late = np.flatnonzero(first[:both] != second[:both])[:1]
    rows = receives[np.isin(taken, met)][late]
    yield Broken(Rule.MESSAGE, rows, "overtakes what was sent before it")


def _unmet(rows: Ints, own: Ints, others: Ints, what: str) -> Broken:
    left = Counter(others.tolist())
    lonely = []
    for row, message in zip(rows.tolist(), own.tolist(), strict=True):
        left[message] -= 1
        if left[message] < 0:
            lonely.append(row)
    return Broken(Rule.MESSAGE, np.array(lonely, np.int64), what)
