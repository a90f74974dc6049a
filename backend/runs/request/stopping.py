"""When a training ends before its last epoch, from what its evaluations have said."""

from collections.abc import Sequence

from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY
from backend.runs.request.spec import StopSpec

KNOWN = {HELD_OUT_LOSS: False, PERPLEXITY: False, ACCURACY: True}
"""Of these metrics it is known whether more is better."""


def is_larger_better(stop: StopSpec) -> bool | None:
    """Of the metric that is watched; None where nobody has said."""
    return KNOWN.get(stop.metric) if not stop.better else stop.better == "larger"


def evaluations_since_best(values: Sequence[float], larger: bool) -> int:
    """How many values came after the best one, the first of equals; 0 where there is none."""
    if not values:
        return 0
    best = max(values) if larger else min(values)
    return len(values) - 1 - values.index(best)


def why_ended(stop: StopSpec, values: Sequence[float], updates: int, seconds: float) -> str:
    """For people, why a training ends; "" where it goes on. `values` are those of the metric that
    is watched, `updates` and `seconds` count from the start of the run."""
    waited = evaluations_since_best(values, bool(is_larger_better(stop)))
    if stop.patience and waited >= stop.patience:
        best = values[-1 - waited]
        return f"{stop.metric} has not been better than {best:.6g} for {waited} evaluations"
    if stop.updates and updates >= stop.updates:
        return f"{updates} weight updates are made"
    if stop.seconds and seconds >= stop.seconds:
        return f"{seconds:.0f} s have passed since the run started"
    return ""
