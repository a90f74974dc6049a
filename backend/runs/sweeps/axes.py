"""What a sweep can vary of a training, and how its axes are written."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from backend.codec import from_plain, to_plain
from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.sweep import SweepAxis, Value

PARAMETER = "set."
BATCH = 4
"""Microbatches of an update, for a schedule that flushes, of a plan for one that does not."""
OF_OPTIMIZER = {
    "lr": "learning_rate",
    "optimizer": "name",
    "momentum": "momentum",
    "weight-decay": "weight_decay",
    "clip": "clip_norm",
    "warm-up": "warm_up",
    "decay": "decay",
    "ema": "ema",
}
OF_TRAINING = {"epochs": "epochs", "seed": "seed", "precision": "precision"}
OF_PLAN = {"microbatch": "microbatch", "batch": "batch"}
SETTINGS = ("plan", "schedule", *OF_PLAN, *OF_OPTIMIZER, *OF_TRAINING)
"""By name; of a plan its number."""
EXAMPLE = "Write NAME=VALUE,VALUE or, for a random search, NAME=log:LOW:HIGH."
HINT = f"Choose one of: {', '.join(SETTINGS)}, or {PARAMETER}NAME for a parameter of the model."

PlanOf = Callable[[int], Plan]


def varied(base: TrainSpec, values: Mapping[str, Value], plan_of: PlanOf) -> TrainSpec:
    """`base` with these values, the plan first; `plan_of` gives a kept one by its number. Raises
    `InvalidInput`, and what `plan_of` raises."""
    for name in values:
        if name not in SETTINGS and not (name.startswith(PARAMETER) and name != PARAMETER):
            raise InvalidInput(f"no setting {name!r:.100}", HINT)
    if "plan" in values:
        number = _as(int, "plan", values["plan"])
        base = replace(base, plan=plan_of(number), plan_id=number)
    if "schedule" in values:
        base = replace(base, plan=under(base.plan, str(values["schedule"])))
    plan = _with(Plan, base.plan, _named(OF_PLAN, values))
    rule = _with(OptimizerSpec, base.optimizer, _named(OF_OPTIMIZER, values))
    given = {n.removeprefix(PARAMETER): v for n, v in values.items() if n.startswith(PARAMETER)}
    changed = _named(OF_TRAINING, values) | {"parameters": {**base.parameters, **given}}
    made: TrainSpec = _with(TrainSpec, base, changed)
    return replace(made, plan=plan, optimizer=rule)


def under(plan: Plan, schedule: str) -> Plan:
    """The same partition under another schedule, with a batch that it can have."""
    return plan.under(schedule, plan.batch if plan.batch > 1 else BATCH)


def read_axis(text: str) -> SweepAxis:
    """Of "lr=0.1,0.01", "lr=log:0.001:0.1", "momentum=even:0.8:0.99" or "seed=whole:0:9". Raises
    `InvalidInput`."""
    name, sign, given = text.strip().partition("=")
    name, given = name.strip(), given.strip()
    if not (name and sign and given):
        raise InvalidInput(f"{text.strip()!r:.100} is not an axis", EXAMPLE)
    kind, *ends = given.split(":")
    if kind not in ("log", "even", "whole") or len(ends) != 2:
        return SweepAxis(name, tuple(_value(part) for part in given.split(",") if part.strip()))
    low, high = (_as(float, name, end) for end in ends)
    return SweepAxis(name, (), low, high, kind == "log", kind == "whole")


def _value(text: str) -> Value:
    """A number where it is one, "true" and "false", else the text."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _as(kind: Any, name: str, value: object) -> Any:
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} cannot be {value!r:.100}", EXAMPLE) from None


def _named(names: Mapping[str, str], values: Mapping[str, Value]) -> dict[str, Value]:
    return {names[name]: value for name, value in values.items() if name in names}


def _with(kind: Any, thing: Any, changed: Mapping[str, object]) -> Any:
    """`replace`, its types checked."""
    return from_plain(kind, to_plain(kind, thing) | changed) if changed else thing
