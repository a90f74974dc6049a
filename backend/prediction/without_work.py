"""Why a plan leaves devices without work: the fastest plan that gives all of them some."""

from collections.abc import Iterable

from backend.planning.plan import Plan
from backend.prediction.answer import Answer


def with_all_devices(others: Iterable[Answer], num_devices: int) -> Answer | None:
    """The one of the most samples/s among the answers that use all devices."""
    full = [one for one in others if _used(one.prediction.plan) == num_devices]
    return max(full, key=lambda one: one.prediction.samples_per_second, default=None)


def idle_words(found: Answer, full: Answer | None, num_devices: int) -> str:
    """What the fastest plan on all devices does beside `found`; "" where that uses them all."""
    if _used(found.prediction.plan) == num_devices:
        return ""
    if full is None:
        return f"No planner found a plan that fits and gives all {num_devices} devices work."
    mine, theirs = found.prediction.samples_per_second, full.prediction.samples_per_second
    label = f"{full.prediction.plan.label}, {theirs:,.0f} samples/s"
    if theirs > mine:
        return f"A faster plan gives all {num_devices} devices work: {label}."
    return f"The fastest plan that gives all {num_devices} devices work is slower: {label}."


def _used(plan: Plan) -> int:
    """Devices that have work, on all sites."""
    return len(set(plan.devices))
