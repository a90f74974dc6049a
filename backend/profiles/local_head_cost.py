"""What the head of a local loss costs where a model is cut behind a layer."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class LocalHeadCost:
    """Of the local head called `name`, at the profile's microbatch size.

    seconds          its forward, its loss and the backward of both: a part of a stage's backward
    parameter_bytes  bytes of its weights
    work_bytes       most bytes alive at once while it works, beside its weights and their sums of
                     gradients
    flops            floating point operations of its forward
    update, adding, out_of_place_update   seconds, as of a layer's weights
    """

    name: str
    seconds: float
    parameter_bytes: int
    work_bytes: int = 0
    flops: float = 0.0
    update: float = 0.0
    adding: float = 0.0
    out_of_place_update: float = 0.0

    def scaled(self, compute: float, weights: float, samples: float) -> "LocalHeadCost":
        """As a layer is scaled (`Layer.scaled`)."""
        steady = min(self.work_bytes, self.parameter_bytes)
        return replace(
            self,
            seconds=self.seconds * compute,
            work_bytes=steady + round((self.work_bytes - steady) * samples),
            flops=self.flops * samples,
            update=self.update * weights,
            adding=self.adding * weights,
            out_of_place_update=self.out_of_place_update * weights,
        )
