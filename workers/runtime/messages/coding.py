"""Messages as they are on the wire: coded by the codec of the cut that they cross, and counted."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.catalog import codec
from backend.pipeline.codecs.codec import Numbers
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.stage import Tensors
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.messages.codecs.coder import ALL_ZERO, Past, RoundTrip, numbers_of
from workers.runtime.messages.codecs.differences import SampleMemory


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
SamplesOf = Callable[[int], Sequence[int]]
"""From a microbatch to the numbers of its training samples."""


def _no_samples(microbatch: int) -> Sequence[int]:
    """Held-out samples have no numbers."""
    return ()


@dataclass(slots=True)
class Coding:
    """`codecs` are those of the cut behind each stage (() = none). `begun` are the round trips
    whose gradients are yet to come or to go, one for each tensor that has one. `samples` are those
    of each microbatch of a segment, of which none comes twice; `memories` what codecs keep of them,
    by cut and by the place of a tensor in its bundle."""

    codecs: tuple[str, ...] = ()
    sent: SentBytes = SentBytes()
    answered: frozenset[Crossed] = frozenset()
    begun: dict[Crossed, list[RoundTrip]] = field(default_factory=dict)
    samples: SamplesOf = _no_samples
    memories: dict[int, defaultdict[int, SampleMemory]] = field(init=False)

    def __post_init__(self) -> None:
        kept = (cut for cut, name in enumerate(self.codecs) if name and codec(name).keeps_samples)
        self.memories = {cut: defaultdict(SampleMemory) for cut in kept}

    def expect(self, samples: SamplesOf | None) -> None:
        """Of which training samples the microbatches of the next segment are; None: of others."""
        self.samples = samples or _no_samples

    def state(self, cut: int) -> dict[str, Tensor]:
        """What is kept of the samples that crossed a cut: "place/name" as `SampleMemory` has it."""
        return {
            f"{place}/{name}": tensor
            for place, memory in self.memories.get(cut, {}).items()
            for name, tensor in memory.state.items()
        }

    def load_state(self, cut: int, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave at one end of the cut: at both ends from the same. Where
        the codec keeps no samples nothing is taken."""
        by_place: defaultdict[int, dict[str, Tensor]] = defaultdict(dict)
        for key, tensor in state.items():
            number, _, name = key.partition("/")
            by_place[int(number)][name] = tensor
        if cut in self.memories:
            for place, own in by_place.items():
                self.memories[cut][place].load_state(own)

    def kept_per_sample(self, cut: int, specs: Sequence[TensorSpec], size: int) -> int:
        """Bytes that either end of the cut keeps of a sample, of bundles of `size` samples."""
        if cut not in self.memories:
            return 0
        forth, name = Message(Flow.ACTIVATION, cut, 0), self.codecs[cut]
        kept = (each for each in specs if each.num_rows == size)
        return sum(s.num_bytes // size for s in kept if _is_coded(forth, name, s, numbers_of(s)))

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
        names = self._names(message, specs)
        return tuple(
            self._as_bytes(message, place, spec) if names[place] else spec
            for place, spec in enumerate(specs)
        )

    def _as_bytes(self, message: Message, place: int, spec: TensorSpec) -> TensorSpec:
        numbers = self._numbers(message, place, spec)
        num_bytes = codec(self.codecs[message.cut]).sent_bytes(message.flow, numbers)
        return replace(spec, shape=(num_bytes,), dtype=torch.uint8)

    def _round_trips(
        self, message: Message, specs: Sequence[TensorSpec]
    ) -> Sequence[RoundTrip | None]:
        """Of each tensor, None for one that goes plain. Called once per message."""
        if not (self.codecs and self.codecs[message.cut]):
            return [None] * len(specs)
        crossed = _crossed(message)
        if message.flow is Flow.GRADIENT:
            known = self.begun.pop(crossed)
        else:
            begin = ROUND_TRIPS[self.codecs[message.cut]]
            known = [begin(self._past(message, place)) for place in range(len(specs))]
            if crossed in self.answered:
                pairs = zip(known, specs, strict=True)
                self.begun[crossed] = [each for each, spec in pairs if spec.requires_grad]
        names = self._names(message, specs)
        return [each if name else None for each, name in zip(known, names, strict=True)]

    def _names(self, message: Message, specs: Sequence[TensorSpec]) -> list[str]:
        """The codec of each tensor, "" for none."""
        name = self.codecs[message.cut] if self.codecs else ""
        if not name:
            return [""] * len(specs)
        return [
            name if _is_coded(message, name, spec, self._numbers(message, place, spec)) else ""
            for place, spec in enumerate(specs)
        ]

    def _numbers(self, message: Message, place: int, spec: TensorSpec) -> Numbers:
        """What the bytes of the tensor at a place of its bundle depend on."""
        numbers, memories = numbers_of(spec), self.memories.get(message.cut)
        if memories is None or message.flow is Flow.GRADIENT:
            return numbers
        samples = self.samples(message.microbatch)
        if not samples or numbers.rows != len(samples):
            return replace(numbers, is_by_sample=False)
        known = memories[place].num_known(samples, numbers.per_row)
        return replace(numbers, new=numbers.rows - known)

    def _past(self, message: Message, place: int) -> Past:
        if message.cut not in self.memories:
            return ALL_ZERO
        return self.memories[message.cut][place].of(self.samples(message.microbatch))


def _crossed(message: Message) -> Crossed:
    return message.cut, message.microbatch


def _is_coded(message: Message, name: str, spec: TensorSpec, numbers: Numbers) -> bool:
    floats = spec.dtype.is_floating_point and spec.requires_grad
    return floats and codec(name).codes(message.flow, numbers)
