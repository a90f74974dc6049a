"""How a layer is shared by the replicas of its stage: by samples or by channels, what each way
reads and gives, and what a replica lacks of a tensor that it has otherwise.

Source: Song et al., "AccPar: Tensor Partitioning for Heterogeneous Deep Learning Accelerators",
HPCA 2020: types I, II and III.
"""

from enum import Enum, StrEnum, auto


class LayerType(StrEnum):
    """AccPar's types, in its order; the first is data parallelism."""

    SAMPLES = "samples"
    INPUTS = "input channels"
    OUTPUTS = "output channels"


class Held(Enum):
    """What a replica has of a tensor of all replicas' samples."""

    OWN_SAMPLES = auto()
    OWN_CHANNELS = auto()
    ALL = auto()


READS = {
    LayerType.SAMPLES: Held.OWN_SAMPLES,
    LayerType.INPUTS: Held.OWN_CHANNELS,
    LayerType.OUTPUTS: Held.ALL,
}
"""Of a layer's input. Once partial sums are added up, its gradient comes in the same form."""
GIVES = {
    LayerType.SAMPLES: Held.OWN_SAMPLES,
    LayerType.INPUTS: Held.ALL,
    LayerType.OUTPUTS: Held.OWN_CHANNELS,
}
"""Of a layer's output once partial sums are added up; the backward needs its gradient so."""


def lacked(has: Held, needs: Held, part: float) -> float:
    """The share of a tensor that a replica with `part` of all samples and channels receives, to
    have it as it `needs` it. Halves give AccPar's table: a quarter between samples and channels,
    a half from either to all."""
    if has in (needs, Held.ALL):
        return 0.0
    return 1 - part if needs is Held.ALL else part * (1 - part)
