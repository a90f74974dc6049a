"""Every optimizer that trains here, by name: the facts that planners, forms and commands need.

The update rules themselves are torch's business (`workers.runtime.optimizers`), one per name.
"""

from dataclasses import dataclass
from typing import Literal

from backend.errors import InvalidInput
from backend.profiles.state_precision import state_precision_named

OptimizerName = Literal["momentum", "sgd", "adam", "adamw"]
"""The names, for forms and stored documents; the first is the default."""


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """`values`: how many it keeps per weight."""

    title: str
    source: str
    values: int

    def copies(self, precision: str = "float32", sharers: int = 1) -> float:
        """Bytes beside the versions of the weights over those of a version: one gradient, the
        masters and the state, in a precision of `STATE_PRECISIONS`; of masters and state as many
        replicas as `sharers` keep an equal part each."""
        return 1 + state_precision_named(precision).optimizer(self.values) / sharers


OPTIMIZERS: dict[OptimizerName, OptimizerKind] = {
    "momentum": OptimizerKind("SGD with momentum", "Sutskever et al., ICML 2013", 1),
    "sgd": OptimizerKind("SGD", "Robbins and Monro, 1951", 0),
    "adam": OptimizerKind("Adam", "Kingma and Ba, ICLR 2015, algorithm 1", 2),
    "adamw": OptimizerKind("AdamW", "Loshchilov and Hutter, ICLR 2019", 2),
}


def optimizer_named(name: str) -> OptimizerKind:
    """The optimizer called `name`; raises `InvalidInput` with the names that there are."""
    for known, found in OPTIMIZERS.items():
        if known == name:
            return found
    raise InvalidInput(f"no optimizer {name!r}", f"Known are: {', '.join(OPTIMIZERS)}.")
