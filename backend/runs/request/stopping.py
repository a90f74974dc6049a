"""When a training ends before its last epoch, from what its evaluations have said."""

from collections.abc import Collection, Sequence
from math import inf, isfinite

from backend.errors import InvalidInput
from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY
from backend.runs.request.metric_names import METRIC_NAME, METRIC_NAMES
from backend.runs.request.spec import StopSpec, TrainSpec

KNOWN = {HELD_OUT_LOSS: False, PERPLEXITY: False, ACCURACY: True}
"""Of these metrics it is known whether more is better."""
EACH_UPDATE = ("loss", "throughput")
"""Metrics of every run that no evaluation tells."""


def check_targets(spec: TrainSpec) -> None:
    """Raises `InvalidInput`."""
    if spec.target_accuracy is not None and not 0 < spec.target_accuracy <= 1:
        raise InvalidInput(
            f"target accuracy {spec.target_accuracy:g} is not above 0 and at most 1",
            "0.95 means 95 % of the held-out samples.",
        )
    if spec.target_loss is not None and not (isfinite(spec.target_loss) and spec.target_loss > 0):
        raise InvalidInput(
            f"target loss {spec.target_loss:g} is not above 0",
            "It is the mean loss of the held-out samples; a perplexity p is a loss of ln p.",
        )
    if spec.target_loss is not None and spec.target_accuracy is not None:
        raise InvalidInput(
            f"two targets, accuracy {spec.target_accuracy:g} and loss {spec.target_loss:g}",
            "Stop at one of them.",
        )


def check_stop(stop: StopSpec, keeps_best: bool) -> None:
    """Raises `InvalidInput`."""
    if min(stop.patience, stop.updates) < 0 or not 0 <= stop.seconds < inf:
        raise InvalidInput(
            f"a patience of {stop.patience} evaluations, {stop.updates} updates or "
            f"{stop.seconds:g} s is below 0",
            "Give numbers above 0, or 0 to end for another reason alone.",
        )
    if not (stop.patience or keeps_best):
        return
    if not METRIC_NAME.fullmatch(stop.metric):
        raise InvalidInput(f"no metric is named {stop.metric!r}", f"A name has {METRIC_NAMES}.")
    if stop.metric in EACH_UPDATE:
        raise InvalidInput(
            f"no evaluation tells {stop.metric!r}",
            f"Watch {', '.join(KNOWN)}, or a metric of the model's own.",
        )
    if is_larger_better(stop) is None:
        raise InvalidInput(
            f"it is not known which values of {stop.metric!r} are better",
            "Say larger or smaller (Better values, --better).",
        )


def is_larger_better(stop: StopSpec) -> bool | None:
    """Of the metric that is watched; None where nobody has said."""
    return KNOWN.get(stop.metric) if not stop.better else stop.better == "larger"


def evaluations_since_best(values: Sequence[float], larger: bool) -> int:
    """How many values came after the best one, the first of equals; 0 where there is none."""
    if not values:
        return 0
    best = max(values) if larger else min(values)
    return len(values) - 1 - values.index(best)


def watched_in_vain(stop: StopSpec, keeps_best: bool, told: Collection[str], is_over: bool) -> str:
    """For people, that no evaluation tells the metric that is watched, but `told` ones."""
    without = ["patience has no effect"] if stop.patience else []
    without += ["no best checkpoint is kept"] if keeps_best else []
    there = f"they tell {', '.join(sorted(told))}" if told else "the run has none"
    again = "Launch it again" if is_over else "Cancel the run and launch it again"
    way = "with one of these as the metric" if told else "with held-out samples"
    return (
        f"Evaluations do not tell {stop.metric!r}: {there}. So {' and '.join(without)}. "
        f"{again} {way}."
    )


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
