"""What one layer costs, and several together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from pydantic import Field

from backend.profiles.local_head_cost import LocalHeadCost


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer at the profile's microbatch size.

    name                 the model's own module path ("features.0"), unique in the graph
    kind                 what it is ("Conv2d", "add")
    forward              seconds of one forward
    backward             seconds of one full backward (input and weight gradient)
    output_bytes         bytes of the output, which travel if the graph is cut behind it
    parameter_bytes      bytes of trainable parameters
    update               seconds of one optimizer update of its parameters
    backward_input       seconds of the half of a backward that gives the input's gradient alone
                         (Qi et al., ICLR 2024); 0 = not measured apart
    backward_weight      seconds of the other half, run by itself: together they may take longer
                         than the whole; 0 = not measured
    adding               seconds to add the gradients of its parameters to those of other
                         microbatches; 0 = not measured
    out_of_place_update  seconds of an update that keeps the old parameters beside the new;
                         0 = not measured
    saved_bytes          activations that autograd keeps for the backward, each storage once and
                         parameters left out; None = not measured
    buffer_bytes         bytes of running statistics and constants
    frozen_bytes         bytes of parameters that are not trained: they have no gradient, no state
                         of an optimizer and one version
    work_bytes           most bytes alive at once while it works, beside its weights, their sums
                         of gradients, what it is given, hands on and keeps: temporary tensors,
                         gradients on their way; None = not measured
    deferred_bytes       gradients that the input's half of a backward leaves for the weights'
                         half; None = not measured
    flops                floating point operations of one forward; None = not counted
    spread               half the range of the seconds of equal layers over their median, where a
                         few were measured for all of them; None = measured by itself
    local_heads          heads that a stage which ends with it may learn from by a loss of its own,
                         the usual one first; () = not measured
    """

    name: str
    kind: str
    forward: float
    backward: float
    output_bytes: int
    parameter_bytes: int
    update: float = 0.0
    backward_input: float = 0.0
    saved_bytes: int | None = None
    buffer_bytes: int = 0
    flops: float | None = None
    backward_weight: float = 0.0
    adding: float = 0.0
    out_of_place_update: Annotated[float, Field(alias="renewal")] = 0.0
    frozen_bytes: int = 0
    spread: float | None = None
    work_bytes: int | None = None
    deferred_bytes: int | None = None
    local_heads: tuple[LocalHeadCost, ...] = ()

    @property
    def constant_bytes(self) -> int:
        """What a device holds of it once, whatever the schedule."""
        return self.buffer_bytes + self.frozen_bytes

    @property
    def compute(self) -> float:
        return self.forward + self.backward

    @property
    def input_half(self) -> float:
        """Seconds of the half of a backward that gives the input's gradient: as measured, 0 where
        the layer hands none back. Where no half was measured all of it without weights, else a half
        (ours)."""
        if self.backward_input or self.backward_weight:
            return self.backward_input
        return self.backward / 2 if self.parameter_bytes else self.backward

    @property
    def compute_and_update(self) -> float:
        """What planners count: PipeDream's cost model has no update, ours has one per
        microbatch."""
        return self.compute + self.update

    @property
    def activation_bytes(self) -> int:
        """What a microbatch holds between forward and backward: as measured, else the output."""
        return self.output_bytes if self.saved_bytes is None else self.saved_bytes

    def scaled(self, compute: float = 1.0, weights: float = 1.0, samples: float = 1.0) -> "Layer":
        """The layer with its seconds of compute times `compute`, those of its weights
        (`update`, `adding`, `out_of_place_update`) times `weights`, and what it makes of a
        microbatch times `samples`: of `work_bytes` what may not be gradients of weights."""
        flops, work = self.flops, self.work_bytes
        steady = min(work or 0, self.parameter_bytes)
        return replace(
            self,
            forward=self.forward * compute,
            backward=self.backward * compute,
            backward_input=self.backward_input * compute,
            backward_weight=self.backward_weight * compute,
            update=self.update * weights,
            adding=self.adding * weights,
            out_of_place_update=self.out_of_place_update * weights,
            flops=None if flops is None else flops * samples,
            work_bytes=None if work is None else steady + round((work - steady) * samples),
            output_bytes=round(self.output_bytes * samples),
            saved_bytes=_times(self.saved_bytes, samples),
            deferred_bytes=_times(self.deferred_bytes, samples),
            local_heads=tuple(h.scaled(compute, weights, samples) for h in self.local_heads),
        )


def _times(size: int | None, samples: float) -> int | None:
    return None if size is None else round(size * samples)


@dataclass(frozen=True, eq=False)
class LayerSums:
    """What neighbouring `layers` cost together, named as in `Layer`. Equal to itself alone, for who
    remembers something of it: to compare very many layers takes long.

    backward_input  `Layer.input_half`
    renewal         `out_of_place_update`, where that was not measured the update in place
    """

    layers: tuple[Layer, ...]
    forward: float
    backward: float
    backward_input: float
    backward_weight: float
    update: float
    renewal: float
    adding: float
    parameter_bytes: int

    @classmethod
    def of(cls, layers: Sequence[Layer]) -> "LayerSums":
        return cls(
            tuple(layers),
            sum(each.forward for each in layers),
            sum(each.backward for each in layers),
            sum(each.input_half for each in layers),
            sum(each.backward_weight for each in layers),
            sum(each.update for each in layers),
            sum(each.out_of_place_update or each.update for each in layers),
            sum(each.adding for each in layers),
            sum(each.parameter_bytes for each in layers),
        )

    @property
    def copying(self) -> float:
        """Seconds in which a number for each weight is read and written once: two thirds of what
        adding does (ours: memory binds both)."""
        return 2 / 3 * self.adding

    def buckets(self, most: int) -> tuple[tuple[float, int], ...]:
        """Of gradients, as a backward fills them from the last layer to the first: the seconds of
        backward that are left when one is full, and its bytes, at least `most`; a layer's
        gradients are there when its own backward is over. The last one waits for the end."""
        if most not in self._buckets:
            left, held, full = self.backward, 0, list[tuple[float, int]]()
            for layer in reversed(self.layers):
                left -= layer.backward
                held += layer.parameter_bytes
                if held >= most:
                    full.append((max(0.0, left), held))
                    held = 0
            if held or not full:
                full.append((0.0, held))
            *others, (_, last) = full
            self._buckets[most] = (*others, (0.0, last))
        return self._buckets[most]

    @cached_property
    def _buckets(self) -> dict[int, tuple[tuple[float, int], ...]]:
        return {}
