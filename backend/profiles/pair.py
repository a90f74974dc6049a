"""Two profiles beside each other, layer by layer."""

from collections.abc import Iterator
from dataclasses import dataclass

from backend.profiles.layer import Layer
from backend.profiles.profile import Profile

SIGNIFICANT = 0.02
"""A layer counts from this share of its model's compute on."""
NEAR = 0.1


@dataclass(frozen=True, slots=True)
class LayerPair:
    """A layer of the one profile and that of the same name in the other; None = only one has it."""

    name: str
    one: Layer | None
    other: Layer | None


@dataclass(frozen=True, slots=True)
class ProfilePair:
    """`per_sample`: seconds are compared per sample, since the microbatches differ."""

    one: Profile
    other: Profile

    @property
    def per_sample(self) -> bool:
        return self.one.microbatch != self.other.microbatch

    @property
    def scale(self) -> float:
        """What to multiply seconds of the other by, to stand beside those of the one."""
        return self.one.microbatch / self.other.microbatch

    def layers(self) -> Iterator[LayerPair]:
        """In the order of the one; what the other alone has comes last."""
        others = {layer.name: layer for layer in self.other.layers}
        for layer in self.one.layers:
            yield LayerPair(layer.name, layer, others.pop(layer.name, None))
        yield from (LayerPair(name, None, layer) for name, layer in others.items())

    def significant(self) -> tuple[int, int]:
        """(layers that are within a tenth of each other, layers that count at all)."""
        least = SIGNIFICANT * self.one.compute
        near = counted = 0
        for pair in self.layers():
            if pair.one and pair.other and pair.one.compute >= least and least > 0:
                counted += 1
                near += abs(pair.other.compute * self.scale / pair.one.compute - 1) <= NEAR
        return near, counted
