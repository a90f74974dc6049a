"""A training that keeps the state that its plan was made for: then it fits where the plan does."""

from dataclasses import replace
from typing import cast

from backend.planning.optimizers import AVERAGED, OPTIMIZERS, OptimizerName
from backend.prediction.prediction import Prediction
from backend.profiles.state_precision import HALF, state_precision_named
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec

USUAL_EMA = 0.999
"""The share of the average that stays at each update, where a plan counted with one."""


def planned_rule(made: Prediction) -> OptimizerSpec:
    """The optimizer whose state counted as memory, as it usually is; the first choice of all where
    the plan does not tell."""
    usual, given = OptimizerSpec(), made.optimizer.removesuffix(AVERAGED)
    name = cast(OptimizerName, given or usual.name)
    ema = USUAL_EMA if given != made.optimizer else usual.ema
    return replace(usual, name=name, learning_rate=OPTIMIZERS[name].rate, ema=ema)


def as_planned(spec: TrainSpec, made: Prediction) -> TrainSpec:
    """`spec` with the optimizer and the precision of state that `made` counted, and a compute that
    goes together with it."""
    is_half = state_precision_named(made.state_precision).weight == HALF
    return replace(
        spec,
        optimizer=planned_rule(made),
        state_precision=made.state_precision,
        precision="bfloat16" if is_half else spec.precision,
    )
