"""What a person says of weight updates: their rule, and its learning rate over time."""

from dataclasses import dataclass
from typing import Literal

from backend.planning.optimizers import AVERAGED, OptimizerName

RateDecay = Literal["none", "step", "linear", "cosine", "one-cycle", "inverse-sqrt"]
"""How a learning rate goes on after its warm-up."""


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Weights that are updated otherwise than the others: those with one of the `names`, which are
    paths in the model ("head", and all below it) or patterns ("*.bias").

    rate          of the learning rate, as a factor
    weight_decay  None = the optimizer's
    """

    names: str
    rate: float = 1.0
    weight_decay: float | None = None


@dataclass(frozen=True, slots=True)
class OptimizerSpec:
    """The update rule, and how its learning rate changes while training goes on.

    name           one of `backend.planning.optimizers.OPTIMIZERS`
    weight_decay   added to the gradient as weight_decay * w; AdamW, Adafactor and Lion take it off
                   the weights
    clip_norm      most that the 2-norm of a gradient may be; None = any
    warm_up        epochs in which the rate rises evenly from 0 to its full height
    decay          how it goes on afterwards: constant, by `decay_factor` every `decay_epochs`, to 0
                   at the end, straight or as a cosine; up from a 25th and down again, as one cosine
                   each; or as one over the square root of the updates
    warm_up_updates   the same in weight updates of the run, the first of which has a rate of 0
    betas, eps     None = the usual ones of the rule
    decayed        what weight decay is for; "" = what is usual for the rule where the run is
                   submitted, "all" in documents of before
    groups         of weights with another rate or decay; the first that has a weight counts
    ema            share of the averaged weights that stays at each update (0 = no average): they
                   are evaluated and saved as the trained model
    clip_by        whose gradient `clip_norm` is for: the whole model's, or each stage's own
    """

    name: OptimizerName = "momentum"
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    clip_norm: float | None = None
    warm_up: float = 0.0
    decay: RateDecay = "none"
    decay_epochs: float = 30.0
    decay_factor: float = 0.1
    warm_up_updates: int = 0
    betas: tuple[float, float] | None = None
    eps: float | None = None
    decayed: Literal["", "all", "matrices"] = ""
    groups: tuple[ParameterGroup, ...] = ()
    ema: float = 0.0
    clip_by: Literal["model", "stage"] = "model"

    @property
    def planned(self) -> str:
        """The rule as planners of memory know it."""
        return self.name + AVERAGED * (self.ema > 0)
