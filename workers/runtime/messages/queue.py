"""Bundles on their way: what this rank made, received, and has yet to use."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from backend.pipeline.actions import Action, Flow, Message, Recv, Send
from backend.pipeline.held import in_flight
from backend.pipeline.rows import Rows
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.stage import Tensors
from workers.runtime.messages.coding import Coding, SamplesOf, SentBytes
from workers.runtime.messages.transport import Expected, Transport
from workers.runtime.samples.epoch import Form

Specs = Sequence[tuple[TensorSpec, ...]]


class MessageQueue:
    """`specs[s]` is the bundle that goes into stage s, of microbatches of a form that `others`
    does not name; `codecs` are those of the cut behind each stage. Chunks on one rank meet here
    too, and nothing is coded between them."""

    def __init__(
        self,
        transport: Transport,
        specs: Specs,
        others: Mapping[Form, Specs] | None = None,
        codecs: tuple[str, ...] = (),
    ) -> None:
        self._transport, self._coding = transport, Coding(codecs)
        self._specs, self._others = specs, others or {}
        self._bundles: dict[Message, Tensors] = {}
        self._form: Callable[[int], Form] | None = None
        self._comes_back = True

    def expect(self, form: Callable[[int], Form], samples: SamplesOf | None = None) -> None:
        """Of which form each microbatch of the next segment is, and of which training samples;
        None: of held-out ones."""
        self._form = form if self._others else None
        self._coding.expect(samples)

    def begin(self, actions: Sequence[Action]) -> None:
        """Announce every receive of a segment, and which activations have their gradient in it."""
        self._comes_back = any(
            isinstance(action, Recv) and action.message.flow is Flow.GRADIENT for action in actions
        )
        self._coding.begin(action.message for action in actions if isinstance(action, Recv | Send))
        self._transport.begin(
            [
                Expected(action.message, action.source, self._on_wire(action.message))
                for action in actions
                if isinstance(action, Recv)
            ],
            int(in_flight(Rows.of(actions)).max(initial=0)),
        )

    def put(self, message: Message | None, bundle: Tensors) -> None:
        """Keep what an action made (None: nobody needs it)."""
        if message is not None:
            self._bundles[message] = bundle

    def take(self, message: Message | None) -> Tensors:
        """What an action needs, once (None: nothing)."""
        return () if message is None else self._bundles.pop(message)

    def send(self, message: Message, to: int) -> None:
        bundle = self._coding.encode(message, self._bundles.pop(message), self._spec(message))
        self._transport.send(message, to, bundle, self._is_answered(message))

    def receive(self, message: Message) -> None:
        came = self._transport.receive()
        self._bundles[message] = self._coding.decode(message, came, self._spec(message))

    @property
    def sent(self) -> SentBytes:
        """By this rank to other stages, so far."""
        return self._coding.sent

    def kept(self, cut: int) -> dict[str, Tensor]:
        """What its codec keeps of the samples that crossed a cut; both ends keep the same."""
        return self._coding.state(cut)

    def keep(self, cut: int, state: Mapping[str, Tensor]) -> None:
        """Go on from what `kept` gave of one end. Both ends call it."""
        self._coding.load_state(cut, state)

    def kept_per_sample(self, cut: int, form: Form) -> int:
        """Bytes that either end of a cut keeps of each sample of microbatches of this form."""
        specs = self._others.get(form, self._specs)
        return self._coding.kept_per_sample(cut, specs[cut + 1], form[0])

    def end(self) -> None:
        """Wait until all that was sent has arrived."""
        self._transport.end()

    def _is_answered(self, message: Message) -> bool:
        """Whether this rank waits for something that depends on the message: no gradient comes back
        of activations that need none, nor any in a segment of local losses or an evaluation."""
        if message.flow is Flow.GRADIENT:
            return True
        bundle = self._specs[message.stage + 1]
        return self._comes_back and any(spec.requires_grad for spec in bundle)

    def _on_wire(self, message: Message) -> tuple[TensorSpec, ...]:
        return self._coding.on_wire(message, self._spec(message))

    def _spec(self, message: Message) -> tuple[TensorSpec, ...]:
        specs = self._specs
        if self._form is not None:
            specs = self._others.get(self._form(message.microbatch), specs)
        if message.flow is Flow.ACTIVATION:
            return specs[message.stage + 1]
        return tuple(spec for spec in specs[message.stage] if spec.requires_grad)
