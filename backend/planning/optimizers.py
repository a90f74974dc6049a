"""Every optimizer that trains here, by name: the facts that planners, forms and commands need.

The update rules themselves are torch's business (`workers.runtime.optimizers`), one per name.
"""

from dataclasses import dataclass
from typing import Literal

from backend.errors import InvalidInput

OptimizerName = Literal["momentum", "sgd", "adam", "adamw"]
"""The names, for forms and stored documents; the first is the default."""


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """`state_copies`: how many values it keeps per weight, each as large as the weight."""

    title: str
    source: str
    state_copies: int

    @property
    def copies(self) -> int:
        """Copies of the weights beside their versions: one gradient and the state."""
        return 1 + self.state_copies


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
