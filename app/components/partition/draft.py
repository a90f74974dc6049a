"""The plan that the page is about: a planner's, or one whose partition was changed by hand."""

from dataclasses import dataclass, replace

from app.queries import planner
from app.session import state
from app.session.state import Param
from backend.errors import StageflowError
from backend.planning.cuts import BY_HAND, cut_of, read_cut, write_cut
from backend.planning.plan import Partition, PlanDoesNotFit
from backend.prediction.answer import Answer
from backend.prediction.question import Question


@dataclass(frozen=True, slots=True)
class Draft:
    """`answer` is None where `cut` does not fit the devices; `fault` says why, or why the
    URL's cut is not shown at all."""

    cut: Partition
    answer: Answer | None
    fault: StageflowError | None = None


def draft(question: Question, base: Answer) -> Draft:
    """The URL's cut on top of the planner's plan `base`; `base` where there is none."""
    text = state.text(Param.CUT)
    plan = base.prediction.plan
    if not text:
        return Draft(plan.partition, base)
    try:
        cut = read_cut(text, plan.partition, question.cluster.num_devices)
    except StageflowError as fault:
        return Draft(plan.partition, base, fault)
    if cut == plan.partition:
        return Draft(cut, base)
    edited = replace(plan, planner=BY_HAND, partition=cut, codecs=())
    try:
        return Draft(cut, planner.judged(question, question.coded(edited)))
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
