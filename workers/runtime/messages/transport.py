"""Bundles of tensors between ranks; what differs between gloo and NCCL lives here alone.

gloo   each tensor has a tag of (flow, stage, microbatch); receives are posted ahead of
       their turn, at most one more than the rank may hold microbatches; a thread waits for
       the sends so that the rank need not
NCCL   a posted receive blocks later messages of its communicator, so there is one process
       group per direction and receives are posted in program order, at their turn
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.distributed as dist

from backend.pipeline.actions import Flow, Message
from workers.definitions.record import TensorSpec
from workers.runtime.background import BackgroundWorker
from workers.runtime.compute.stage import Tensors
from workers.runtime.messages.world import PATIENCE, World

LOOK_AHEAD = 4
"""Most receives posted ahead on gloo: enough to hide the hand-over, little memory."""

MAX_TENSORS = 256
MAX_MICROBATCHES = 4096
"""Tags count up to these and begin again; no schedule has so many messages in flight."""


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

    def send(self, message: Message, to: int, tensors: Tensors) -> None:
        """Post a message and return at once; its tensors must not change any more."""
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
        self._sends = BackgroundWorker[tuple[dist.Work, torch.Tensor]](lambda sent: sent[0].wait())

    def begin(self, expected: Sequence[Expected], in_flight: int) -> None:
        self._waiting.extend(expected)
        for _ in range(min(LOOK_AHEAD, in_flight + 1)):
            self._post()

    def receive(self) -> Tensors:
        self._post()
        works, tensors = self._posted.popleft()
        for work in works:
            work.wait()
        return tensors

    def send(self, message: Message, to: int, tensors: Tensors) -> None:
        for index, tensor in enumerate(tensors):
            whole = tensor.detach().contiguous()
            self._sends.put((_work(dist.isend(whole, to, tag=_tag(message, index))), whole))

    def end(self) -> None:
        self._sends.join()

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

    def begin(self, expected: Sequence[Expected], in_flight: int) -> None:
        self._waiting.extend(expected)

    def receive(self) -> Tensors:
        coming = self._waiting.popleft()
        tensors = _empty(coming.specs, self._world.device)
        group = self._groups[coming.message.flow]
        works = [_work(dist.irecv(tensor, coming.source, group=group)) for tensor in tensors]
        for work in works:
            work.wait()
        return tensors

    def send(self, message: Message, to: int, tensors: Tensors) -> None:
        for tensor in tensors:
            whole = tensor.detach().contiguous()
            work = _work(dist.isend(whole, to, group=self._groups[message.flow]))
            self._sent.append((work, whole))
        while self._sent and self._sent[0][0].is_completed():
            self._sent.popleft()

    def end(self) -> None:
        while self._sent:
            self._sent.popleft()[0].wait()


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
