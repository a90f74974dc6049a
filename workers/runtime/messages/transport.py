"""Bundles of tensors between ranks; what differs between gloo and NCCL lives here alone.

gloo   each tensor has a tag of (flow, stage, microbatch); receives are posted ahead of
       their turn, at most one more than the rank may hold microbatches; a thread waits for
       the sends so that the rank need not
NCCL   a posted receive blocks later messages of its communicator, so there is one process
       group per direction and receives are posted in program order, at their turn
"""

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.distributed as dist

from backend.pipeline.actions import Flow, Message
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.background import BackgroundWorker
from workers.runtime.compute.stage import Tensors
from workers.runtime.messages.world import PATIENCE, World

LOOK_AHEAD = 4
"""Most receives posted ahead on gloo: enough to hide the hand-over, little memory."""

MAX_TENSORS = 256
MAX_MICROBATCHES = 4096
"""Tags count up to these and begin again; no schedule has so many messages in flight."""

POLL = 1e-4
"""Seconds between two looks at whether a GPU has sent a message."""

Posted = list[tuple[dist.Work, torch.Tensor]]
"""The tensors of a message that are on their way."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A message that will come from `source`, as tensors of these specs."""

    message: Message
    source: int
    specs: tuple[TensorSpec, ...]


class Transport(Protocol):
    def begin(self, expected: Sequence[Expected], in_flight: int) -> None:
        """Announce the receives of a segment, in the order in which they will be asked for, by
        a rank that holds at most `in_flight` microbatches."""
        ...

    def receive(self) -> Tensors:
        """Wait for the next of them."""
        ...

    def send(self, message: Message, to: int, tensors: Tensors, is_answered: bool = True) -> None:
        """Post a message and return at once; its tensors must not change any more. Where it is not
        answered, nothing else holds the rank back: then it waits until, of those of its stage to
        that rank, no more are on their way than the rank may hold microbatches."""
        ...

    def end(self) -> None:
        """Wait until every send of the segment is done."""
        ...


def transport(world: World) -> Transport:
    """The one for the world's device."""
    return NcclTransport(world) if world.on_gpu else GlooTransport(world)


class GlooTransport:
    """Its sends are waited for in a thread: asking one whether it is done does not work, and a
    wait that times out closes the connection."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: deque[Expected] = deque()
        self._posted: deque[tuple[list[dist.Work], Tensors]] = deque()
        self._sends = BackgroundWorker[Posted](_wait)
        self._unanswered: dict[tuple[int, int, int], BackgroundWorker[Posted]] = {}
        self._room = 0

    def begin(self, expected: Sequence[Expected], in_flight: int) -> None:
        self._waiting.extend(expected)
        self._room = in_flight
        for _ in range(min(LOOK_AHEAD, in_flight + 1)):
            self._post()

    def receive(self) -> Tensors:
        self._post()
        works, tensors = self._posted.popleft()
        for work in works:
            work.wait()
        return tensors

    def send(self, message: Message, to: int, tensors: Tensors, is_answered: bool = True) -> None:
        posted: Posted = []
        for index, tensor in enumerate(tensors):
            whole = tensor.detach().contiguous()
            posted.append((_work(dist.isend(whole, to, tag=_tag(message, index))), whole))
        sends = self._sends if is_answered or not self._room else self._bounded(message.stage, to)
        sends.put(posted)

    def end(self) -> None:
        for sends in (self._sends, *self._unanswered.values()):
            sends.join()

    def _bounded(self, stage: int, to: int) -> BackgroundWorker[Posted]:
        """Holds one that is waited for, and as many behind it as are left of the room."""
        key = stage, to, self._room
        if key not in self._unanswered:
            self._unanswered[key] = BackgroundWorker[Posted](_wait, max(1, self._room - 1))
        return self._unanswered[key]

    def _post(self) -> None:
        if self._waiting:
            coming = self._waiting.popleft()
            tensors = _empty(coming.specs, self._world.device)
            works = [
                _work(dist.irecv(tensor, coming.source, tag=_tag(coming.message, index)))
                for index, tensor in enumerate(tensors)
            ]
            self._posted.append((works, tensors))


class NcclTransport:
    def __init__(self, world: World) -> None:
        self._world = world
        self._groups = {flow: dist.new_group(timeout=PATIENCE) for flow in Flow}
        self._waiting: deque[Expected] = deque()
        self._sent: deque[tuple[dist.Work, torch.Tensor]] = deque()
        self._unanswered: defaultdict[tuple[int, int], deque[list[dist.Work]]] = defaultdict(deque)
        self._room = 0

    def begin(self, expected: Sequence[Expected], in_flight: int) -> None:
        self._waiting.extend(expected)
        self._room = in_flight

    def receive(self) -> Tensors:
        coming = self._waiting.popleft()
        tensors = _empty(coming.specs, self._world.device)
        group = self._groups[coming.message.flow]
        works = [_work(dist.irecv(tensor, coming.source, group=group)) for tensor in tensors]
        for work in works:
            work.wait()
        return tensors

    def send(self, message: Message, to: int, tensors: Tensors, is_answered: bool = True) -> None:
        posted = []
        for tensor in tensors:
            whole = tensor.detach().contiguous()
            work = _work(dist.isend(whole, to, group=self._groups[message.flow]))
            self._sent.append((work, whole))
            posted.append(work)
        if not is_answered and self._room:
            self._hold_back(self._unanswered[message.stage, to], posted)
        while self._sent and self._sent[0][0].is_completed():
            self._sent.popleft()

    def end(self) -> None:
        while self._sent:
            self._sent.popleft()[0].wait()
        self._unanswered.clear()

    def _hold_back(self, before: deque[list[dist.Work]], posted: list[dist.Work]) -> None:
        """Waiting for a message on the GPU would not stop this process from posting more."""
        before.append(posted)
        while len(before) > self._room:
            while not all(work.is_completed() for work in before[0]):
                time.sleep(POLL)
            before.popleft()


def _wait(posted: Posted) -> None:
    for work, _ in posted:
        work.wait()


def _work(work: dist.Work | None) -> dist.Work:
    assert work is not None, "a rank outside the group posted a message"
    return work


def _tag(message: Message, index: int) -> int:
    """One number per tensor in flight between two ranks."""
    flow = int(message.flow is Flow.GRADIENT)
    place = (message.stage * 2 + flow) * MAX_MICROBATCHES + message.microbatch % MAX_MICROBATCHES
    return place * MAX_TENSORS + index


def _empty(specs: tuple[TensorSpec, ...], device: torch.device) -> Tensors:
    return tuple(torch.empty(spec.shape, dtype=spec.dtype, device=device) for spec in specs)
