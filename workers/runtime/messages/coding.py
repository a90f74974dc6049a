"""Messages as they are on the wire: coded by the codec of the cut that they cross, and counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch

from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.catalog import codec
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.stage import Tensors
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.messages.codecs.coder import RoundTrip, numbers_of


@dataclass(frozen=True, slots=True)
class SentBytes:
    """What a rank has sent to other stages: as it was on the wire, and as it would be plain."""

    coded: int = 0
    plain: int = 0

    def __add__(self, other: "SentBytes") -> "SentBytes":
        return SentBytes(self.coded + other.coded, self.plain + other.plain)

    def __sub__(self, other: "SentBytes") -> "SentBytes":
        return SentBytes(self.coded - other.coded, self.plain - other.plain)


Crossed = tuple[int, int]
"""A cut and the microbatch of which a message crosses it."""


@dataclass(slots=True)
class Coding:
    """`codecs` are those of the cut behind each stage (() = none). `begun` are the round trips
    whose gradients are yet to come or to go, one for each tensor that has one."""

    codecs: tuple[str, ...] = ()
    sent: SentBytes = SentBytes()
    answered: frozenset[Crossed] = frozenset()
    begun: dict[Crossed, list[RoundTrip]] = field(default_factory=dict)

    def begin(self, messages: Iterable[Message]) -> None:
        """Announce those of a segment that this rank sends or receives. Of activations to which no
        gradient among them answers, as in an evaluation, nothing is remembered."""
        back = (each for each in messages if each.flow is Flow.GRADIENT)
        self.answered = frozenset(map(_crossed, back)) if self.codecs else frozenset()
        self.begun.clear()

    def encode(self, message: Message, bundle: Tensors, specs: Sequence[TensorSpec]) -> Tensors:
        """What goes on the wire of a bundle of these specs."""
        coded = tuple(
            round_trip.of(message.flow).encode(tensor) if round_trip else tensor
            for tensor, round_trip in zip(bundle, self._round_trips(message, specs), strict=True)
        )
        num_bytes = sum(tensor.nbytes for tensor in coded)
        self.sent += SentBytes(num_bytes, sum(spec.num_bytes for spec in specs))
        return coded

    def decode(self, message: Message, coded: Tensors, specs: Sequence[TensorSpec]) -> Tensors:
        """The bundle of what came."""
        round_trips = self._round_trips(message, specs)
        return tuple(
            round_trip.of(message.flow).decode(tensor, spec) if round_trip else tensor
            for tensor, spec, round_trip in zip(coded, specs, round_trips, strict=True)
        )

    def on_wire(self, message: Message, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        """The specs of what comes for a bundle of these."""
        return tuple(
            replace(spec, shape=(_bytes(message, name, spec),), dtype=torch.uint8) if name else spec
            for spec, name in zip(specs, self._names(message, specs), strict=True)
        )

    def _round_trips(
        self, message: Message, specs: Sequence[TensorSpec]
    ) -> Sequence[RoundTrip | None]:
        """Of each tensor, None for one that goes plain. Called once per message."""
        if not (self.codecs and self.codecs[message.cut]):
            return [None] * len(specs)
        place = _crossed(message)
        if message.flow is Flow.GRADIENT:
            known = self.begun.pop(place)
        else:
            known = [ROUND_TRIPS[self.codecs[message.cut]]() for _ in specs]
            if place in self.answered:
                pairs = zip(known, specs, strict=True)
                self.begun[place] = [each for each, spec in pairs if spec.requires_grad]
        names = self._names(message, specs)
        return [each if name else None for each, name in zip(known, names, strict=True)]

    def _names(self, message: Message, specs: Sequence[TensorSpec]) -> list[str]:
        """The codec of each tensor, "" for none."""
        name = self.codecs[message.cut] if self.codecs else ""
        return [name if name and _is_coded(message, name, spec) else "" for spec in specs]


def _crossed(message: Message) -> Crossed:
    return message.cut, message.microbatch


def _is_coded(message: Message, name: str, spec: TensorSpec) -> bool:
    floats = spec.dtype.is_floating_point and spec.requires_grad
    return floats and codec(name).codes(message.flow, numbers_of(spec))


def _bytes(message: Message, name: str, spec: TensorSpec) -> int:
    return codec(name).sent_bytes(message.flow, numbers_of(spec))
