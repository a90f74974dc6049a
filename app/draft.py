"""The plan that the page is about: a planner's, or one whose partition was changed by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app import planner, state
from app.components.plan_form import Wanted
from app.cuts import cut_of, read_cut, write_cut
from app.naming import BY_HAND
from app.state import Param
from backend.errors import StageflowError
from backend.planning.plan import Partition, PlanDoesNotFit
from backend.prediction.propose import Proposal


@dataclass(frozen=True, slots=True)
class Draft:
    """`proposal` is None where `cut` does not fit the devices; `fault` says why, or why the
    URL's cut is not shown at all."""

    cut: Partition
    proposal: Proposal | None
    fault: StageflowError | None = None


def draft(wanted: Wanted, base: Proposal, found: Sequence[Proposal]) -> Draft:
    """The URL's cut on top of the planner's plan `base`; `base` where there is none."""
    text = state.text(Param.CUT)
    plan = base.prediction.plan
    if not text:
        return Draft(plan.partition, base)
    try:
        cut = read_cut(text, plan.partition, wanted.cluster.num_devices)
    except StageflowError as fault:
        return Draft(plan.partition, base, fault)
    if cut == plan.partition:
        return Draft(cut, base)
    edited = replace(plan, planner=BY_HAND, partition=cut)
    profile, cluster = wanted.stored.profile, wanted.cluster
    try:
        return Draft(cut, planner.by_hand(profile, cluster, edited, wanted.optimizer, found))
    except PlanDoesNotFit as fault:
        return Draft(cut, None, fault)
    except StageflowError as fault:
        return Draft(plan.partition, base, fault)


def change(
    shown: Partition, base: Partition, num_devices: int, stops: list[int], replicas: list[int]
) -> None:
    """Put the partition with these stages into the URL; none where it is the planner's.

    Raises `InvalidInput` where they are no partition of the model on so many devices.
    """
    cut = cut_of(stops, replicas, shown, num_devices)
    same = [(s.stop, s.replicas) for s in cut.stages] == [(s.stop, s.replicas) for s in base.stages]
    state.put(Param.CUT, None if same else write_cut(cut))
