"""The plan that the page is about: a planner's, or one that was changed by hand: its partition, the
codecs at its cuts."""

from dataclasses import dataclass

from app.queries import planner
from app.session import state
from app.session.state import Param
from backend.errors import InvalidInput, StageflowError
from backend.pipeline.codecs.catalog import codecs_of
from backend.planning.cuts import cut_of, read_cut, write_cut
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
    """The URL's cut and codecs on top of the planner's plan `base`; `base` where there are none."""
    text, named = state.text(Param.CUT), state.text(Param.CODECS)
    plan = base.prediction.plan
    cut, num_devices = plan.partition, question.cluster.num_devices // plan.num_sites
    try:
        if text:
            cut = read_cut(text, plan.partition, num_devices)
        codecs = codecs_of(named, len(cut.stages) - 1) if named else plan.codecs
    except StageflowError as fault:
        return Draft(plan.partition, base, fault)
    if (cut, codecs) == (plan.partition, plan.codecs):
        return Draft(cut, base)
    try:
        return Draft(cut, planner.changed(question, plan, cut, named))
    except PlanDoesNotFit as fault:
        return Draft(cut, None, fault)
    except StageflowError as fault:
        return Draft(plan.partition, base, fault)


def change(
    shown: Partition,
    base: Partition,
    num_devices: int,
    stops: list[int],
    replicas: list[int],
    codecs: str | None = None,
) -> None:
    """Put the partition with these stages into the URL; none where it is the planner's and names no
    codecs. With it the codecs of its cuts, "" for those that planners are asked for; None: as they
    are, which are none where they were written for another number of cuts.

    Raises `InvalidInput` where they are no partition of the model on so many devices, and where
    these are no codecs of its cuts.
    """
    cut = cut_of(stops, replicas, shown, num_devices)
    named = state.text(Param.CODECS) if codecs is None else codecs.strip()
    try:
        codecs_of(named, len(cut.stages) - 1)
    except InvalidInput:
        if codecs is not None:
            raise
        named = ""
        state.notify("The codecs of the cuts are gone: they were for another number of cuts")
    same = [(s.stop, s.replicas) for s in cut.stages] == [(s.stop, s.replicas) for s in base.stages]
    state.put(Param.CUT, None if same and not named else write_cut(cut))
    state.put(Param.CODECS, named)
