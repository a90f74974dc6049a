"""Plans that keep an order: brought as a program, or found for the plan's own seconds."""

from collections.abc import Iterable
from dataclasses import replace

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.forms import read_any
from backend.pipeline.kept_order import kept
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.custom import CUSTOM
from backend.pipeline.schedules.zb_v import ZB_V
from backend.pipeline.verify import check
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.prediction.prediction import Prediction
from backend.prediction.programs import check_size, plan_of
from backend.prediction.question import Question
from backend.prediction.synthesised import families, is_straight, synthesised
from backend.profiles.profile import Profile


def brought(data: bytes, profile: Profile, cluster: Cluster) -> Plan:
    """The plan that trains by the program in a file of any form: under the schedule that it names,
    where that orders it so, else "custom" with the order kept. Raises `ProgramUnsound`, and
    `InvalidInput` where it is no batch of a straight pipeline with a flush, or as `plan_of`."""
    program = check(check_size(read_any(data)))
    plan, shape, rule = (
        plan_of(program, profile, cluster),
        program.shape,
        schedule(program.schedule),
    )
    if not rule.kept and lower(rule, shape) == program:
        return plan
    if not (rule.flushes and rule.trains) or shape.num_microbatches != shape.batch:
        raise InvalidInput(
            f"the file has {shape.num_microbatches} microbatches under {rule.name!r}, and an order "
            "is kept of one batch of a schedule that drains",
            "Export as many microbatches as an update has.",
        )
    found = replace(plan, schedule=CUSTOM.name, kept_order=kept(program.ranks))
    CUSTOM.check(found.shape(found.batch))
    return found


def with_order(question: Question, plan: Plan, folds: bool = False) -> Plan:
    """`plan` with an order found for its seconds on the question's cluster, where its schedule
    wants one; else as it is. Where it `folds`, also the same devices with two stages each, which
    lie as a V, are tried.

    Of what the search finds, and of the members of the catalog at the memory of the schedule that
    the plan is made by, the fastest in its steady state. Raises `InvalidInput` where the plan is no
    straight pipeline, `PlanDoesNotFit` where no order fits.
    """
    rule = schedule(plan.schedule)
    if not rule.planned_as or plan.kept_order:
        return plan
    known = replace(plan, planner=""), folds
    if known not in question.ordered:
        question.ordered[known] = _found(question, *known, rule.planned_as)
    return replace(question.ordered[known], planner=plan.planner)


def _found(question: Question, plan: Plan, folds: bool, rule: str) -> Plan:
    is_v = plan.partition.placement is Placement.V
    as_rule = plan.under(ZB_V.name if is_v else rule, plan.batch)
    asked = question.profile_of(plan), question.cluster, as_rule
    fitting: list[Prediction] = []
    fault: PlanDoesNotFit | None = None
    for found in families(*asked) if folds else (synthesised(*asked),):
        stages = replace(plan, partition=found.partition)
        for order in dict.fromkeys(kept(one.program.ranks) for one in (found.found, *found.known)):
            try:
                fitting.append(question.predict(replace(stages, kept_order=order)))
            except PlanDoesNotFit as error:
                fault = fault or error
    if not fitting and fault:
        raise fault
    return min(fitting, key=lambda each: each.seconds_per_minibatch).plan


def straight_one(found: Prediction, others: Iterable[Prediction | None]) -> Plan:
    """The plan of `found` where orders are found for it, else of the fastest of the others for
    which they are; `found`'s where there is none."""
    straight = [each for each in others if each and is_straight(each.plan)]
    if is_straight(found.plan) or not straight:
        return found.plan
    fastest = max(straight, key=lambda each: each.samples_per_second)
    return replace(fastest.plan, planner=found.plan.planner)
