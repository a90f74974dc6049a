"""Bundles on their way: what this rank made, received, and has yet to use."""

from collections.abc import Sequence

from backend.pipeline.actions import Action, Flow, Message, Recv
from backend.pipeline.held import in_flight
from workers.definitions.record import TensorSpec
from workers.runtime.stage import Tensors
from workers.runtime.transport import Expected, Transport


class Mail:
    """`specs[s]` is the bundle that goes into stage s. Chunks on one rank meet here too."""

    def __init__(self, transport: Transport, specs: Sequence[tuple[TensorSpec, ...]]) -> None:
        self._transport = transport
        self._specs = specs
        self._bundles: dict[Message, Tensors] = {}

    def begin(self, actions: Sequence[Action]) -> None:
        """Announce every receive of a segment."""
        self._transport.begin(
            [
                Expected(action.message, action.source, self._spec(action.message))
                for action in actions
                if isinstance(action, Recv)
            ],
            max(in_flight(actions), default=0),
        )

    def put(self, message: Message | None, bundle: Tensors) -> None:
        """Keep what an action made (None: nobody needs it)."""
        if message is not None:
            self._bundles[message] = bundle

    def take(self, message: Message | None) -> Tensors:
        """What an action needs, once (None: nothing)."""
        return () if message is None else self._bundles.pop(message)

    def send(self, message: Message, to: int) -> None:
        self._transport.send(message, to, self._bundles.pop(message))

    def receive(self, message: Message) -> None:
        self._bundles[message] = self._transport.receive()

    def end(self) -> None:
        """Wait until all that was sent has arrived."""
        self._transport.end()

    def _spec(self, message: Message) -> tuple[TensorSpec, ...]:
        if message.flow is Flow.ACTIVATION:
            return self._specs[message.stage + 1]
        return tuple(spec for spec in self._specs[message.stage] if spec.requires_grad)
