"""Messages and collectives that really happen, and end no sooner than emulated links allow."""

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend.pipeline.actions import Message
from workers.runtime.compute.stage import Tensors
from workers.runtime.emulated.links import EmulatedLinks
from workers.runtime.messages.transport import Expected, Transport
from workers.runtime.messages.world import Pending

DelayedMessage = tuple[float, int, Message, int, Tensors]
"""When it will have arrived, its number, the message, to whom, its tensors."""


class DelayedTransport:
    """Sends a message at the moment at which it would have arrived; a thread does it, so that
    the rank need not wait."""

    def __init__(self, inner: Transport, links: EmulatedLinks) -> None:
        self._inner, self._links = inner, links
        self._messages: list[DelayedMessage] = []
        self._count = self._pending = 0
        self._changed = threading.Condition()
        self._error: Exception | None = None
        threading.Thread(target=self._deliver, daemon=True).start()

    def begin(self, expected: Sequence[Expected], in_flight: int) -> None:
        self._inner.begin(expected, in_flight)

    def receive(self) -> Tensors:
        return self._inner.receive()

    def send(self, message: Message, to: int, tensors: Tensors, is_answered: bool = True) -> None:
        """The tensors are small, so none waits for those before it."""
        arrival = self._links.send(to, sum(tensor.nbytes for tensor in tensors))
        with self._changed:
            self._count, self._pending = self._count + 1, self._pending + 1
            heapq.heappush(self._messages, (arrival, self._count, message, to, tensors))
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._pending == 0)
            if self._error:
                raise self._error
        self._inner.end()

    def _deliver(self) -> None:
        while True:
            _, _, message, to, tensors = self._next()
            try:
                self._inner.send(message, to, tensors)
            except Exception as error:
                self._error = self._error or error
            with self._changed:
                self._pending -= 1
                self._changed.notify_all()

    def _next(self) -> DelayedMessage:
        """The first message that is due, once it is."""
        with self._changed:
            while True:
                left = self._messages[0][0] - time.monotonic() if self._messages else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._messages)
                self._changed.wait(left)


@dataclass(frozen=True, slots=True)
class DelayedCollectives:
    """Every collective of a group lasts as long as a ring over the emulated links."""

    links: EmulatedLinks
    bucket_bytes: int

    def begin(
        self, ranks: tuple[int, ...], num_bytes: int, start: Callable[[], Pending], rounds: int = 2
    ) -> Pending:
        number = self.links.join()
        return _DelayedCollective(self.links, number, ranks, num_bytes, start(), rounds)


@dataclass(frozen=True, slots=True)
class _DelayedCollective:
    links: EmulatedLinks
    number: int
    ranks: tuple[int, ...]
    num_bytes: int
    begun: Pending
    rounds: int

    def wait(self) -> None:
        self.begun.wait()
        end = self.links.collective(self.number, self.ranks, self.num_bytes, self.rounds)
        time.sleep(max(0.0, end - time.monotonic()))
