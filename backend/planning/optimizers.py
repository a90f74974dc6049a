"""Every optimizer that trains here, by name: the facts that planners, forms and commands need.

The update rules themselves are torch's business (`workers.runtime.state.optimizers`), one per
name.
"""

from dataclasses import dataclass, replace
from typing import Literal

from backend.errors import InvalidInput
from backend.profiles.state_precision import FULL, state_precision_named

OptimizerName = Literal["momentum", "sgd", "adam", "adamw", "adafactor", "lion"]
"""The names, for forms and stored documents; the first is the default."""

AVERAGED = "+ema"
"""Behind a name: an average of the weights is kept beside."""


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """What is known of one.

    values           how many numbers it keeps per weight; a row and a column of each matrix are
                     not counted
    betas, eps       the usual ones; None = it has none
    is_elementwise   whether it can update a part of a matrix without the rest
    spares_vectors   whether weight decay usually leaves norms and biases alone
    averages         of the weights beside its own values, in float32
    rate             the learning rate that its source or torch proposes: where a form begins
    """

    title: str
    source: str
    values: int
    betas: tuple[float, float] | None = None
    eps: float | None = None
    is_elementwise: bool = True
    spares_vectors: bool = False
    averages: int = 0
    rate: float = 0.01

    def copies(self, precision: str = "float32", sharers: int = 1) -> float:
        """Bytes beside the versions of the weights over those of a version: one gradient, the
        masters and the state, in a precision of `STATE_PRECISIONS`; of masters and state as many
        replicas as `sharers` keep an equal part each."""
        return 1 + self.state(precision) / sharers

    def state(self, precision: str) -> float:
        """Bytes of masters, of its values and of the average over those of the weights."""
        kept = state_precision_named(precision)
        return kept.optimizer(self.values) + self.averages * FULL / kept.weight


OPTIMIZERS: dict[OptimizerName, OptimizerKind] = {
    "momentum": OptimizerKind("SGD with momentum", "Sutskever et al., ICML 2013", 1),
    "sgd": OptimizerKind("SGD", "Robbins and Monro, 1951", 0),
    "adam": OptimizerKind(
        "Adam", "Kingma and Ba, ICLR 2015, algorithm 1", 2, betas=(0.9, 0.999), eps=1e-8, rate=1e-3
    ),
    "adamw": OptimizerKind(
        "AdamW",
        "Loshchilov and Hutter, ICLR 2019",
        2,
        betas=(0.9, 0.999),
        eps=1e-8,
        spares_vectors=True,
        rate=1e-3,
    ),
    "adafactor": OptimizerKind(
        "Adafactor",
        "Shazeer and Stern, ICML 2018, algorithms 4 and 5",
        0,
        is_elementwise=False,
        spares_vectors=True,
    ),
    "lion": OptimizerKind(
        "Lion",
        "Chen et al., NeurIPS 2023, algorithm 2",
        1,
        betas=(0.9, 0.99),
        spares_vectors=True,
        rate=1e-4,
    ),
}


def optimizer_named(name: str) -> OptimizerKind:
    """The optimizer called `name`, with an average of the weights where `AVERAGED` follows; raises
    `InvalidInput` with the names that there are."""
    plain = name.removesuffix(AVERAGED)
    for known, found in OPTIMIZERS.items():
        if known == plain:
            return replace(found, averages=1) if plain != name else found
    raise InvalidInput(f"no optimizer {name!r}", f"Choose one of: {', '.join(OPTIMIZERS)}.")
