"""Messages as they are on the wire: coded by the codec of the cut that they cross, and counted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from backend.pipeline.actions import Message
from backend.pipeline.codecs.catalog import codec
from backend.pipeline.codecs.codec import Numbers
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.stage import Tensors
from workers.runtime.messages.codecs.catalog import CODERS


@dataclass(frozen=True, slots=True)
class SentBytes:
    """What a rank has sent to other stages: as it was on the wire, and as it would be plain."""

    coded: int = 0
    plain: int = 0

    def __add__(self, other: "SentBytes") -> "SentBytes":
        return SentBytes(self.coded + other.coded, self.plain + other.plain)

    def __sub__(self, other: "SentBytes") -> "SentBytes":
        return SentBytes(self.coded - other.coded, self.plain - other.plain)


@dataclass(slots=True)
class Coding:
    """`codecs` are those of the cut behind each stage (() = none)."""

    codecs: tuple[str, ...] = ()
    sent: SentBytes = SentBytes()

    def encode(self, message: Message, bundle: Tensors, specs: Sequence[TensorSpec]) -> Tensors:
        """What goes on the wire of a bundle of these specs."""
        coded = tuple(
            CODERS[name][message.flow].encode(tensor) if name else tensor
            for tensor, name in zip(bundle, self._names(message, specs), strict=True)
        )
        num_bytes = sum(tensor.nbytes for tensor in coded)
        self.sent += SentBytes(num_bytes, sum(spec.num_bytes for spec in specs))
        return coded

    def decode(self, message: Message, coded: Tensors, specs: Sequence[TensorSpec]) -> Tensors:
        """The bundle of what came."""
        return tuple(
            CODERS[name][message.flow].decode(tensor, spec) if name else tensor
            for tensor, spec, name in zip(coded, specs, self._names(message, specs), strict=True)
        )

    def on_wire(self, message: Message, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        """The specs of what comes for a bundle of these."""
        return tuple(
            replace(spec, shape=(_bytes(message, name, spec),), dtype=torch.uint8) if name else spec
            for spec, name in zip(specs, self._names(message, specs), strict=True)
        )

    def _names(self, message: Message, specs: Sequence[TensorSpec]) -> list[str]:
        """The codec of each tensor, "" for none."""
        name = self.codecs[message.cut] if self.codecs else ""
        return [name if name and _is_coded(message, name, spec) else "" for spec in specs]


def _is_coded(message: Message, name: str, spec: TensorSpec) -> bool:
    floats = spec.dtype.is_floating_point and spec.requires_grad
    return floats and codec(name).codes(message.flow, _numbers(spec))


def _bytes(message: Message, name: str, spec: TensorSpec) -> int:
    return codec(name).sent_bytes(message.flow, _numbers(spec))


def _numbers(spec: TensorSpec) -> Numbers:
    return Numbers(torch.Size(spec.shape).numel(), spec.dtype.itemsize)
