"""Plans for several sites: each runs the plan that was found for one, and they exchange weights."""

from dataclasses import replace

from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.sites import OTHER_LABELS, read_sites
from backend.planning.work import SearchWork
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.search import first_found, search
from backend.prediction.watch import Watch
from backend.units import bytes_text, count_text, percent_text


def in_a_site(question: Question) -> Question:
    """What is asked of one site. Raises `InvalidInput` where the cluster has none."""
    return replace(question, cluster=question.cluster.site, sites="")


def planned(name: str, question: Question, watch: Watch, work: SearchWork) -> Prediction:
    """What `search` says; where sites are asked for, the plan of one on each."""
    if not question.sites:
        return search(name, question, watch, work)
    return across(question, search(name, in_a_site(question), watch, work))


def planned_first(question: Question, watch: Watch) -> Prediction:
    """What `first_found` says, likewise."""
    if not question.sites:
        return first_found(question, watch)
    return across(question, first_found(in_a_site(question), watch))


def across(question: Question, found: Prediction) -> Prediction:
    """What the plan that was found for a site does on every one. Raises as `predict`, and
    `PlanDoesNotFit` where its pipelines are several already."""
    plan, sites = found.plan, read_sites(question.sites)
    if sites is None:
        return found
    if plan.num_pipelines > 1:
        raise PlanDoesNotFit(
            f"{plan.num_pipelines} parallel pipelines in a site exchange by a rule of their own",
            "Choose another planner for sites.",
        )
    apart = replace(sites, devices=question.cluster.site.num_devices)
    return question.predict(replace(plan, num_pipelines=question.cluster.num_sites, sites=apart))


def sites_reason(plan: Plan, durations: PlanDurations) -> str:
    """What sites send, and what the prediction assumes, in a sentence; "" where there are none."""
    exchange, count = durations.exchange, plan.num_pipelines
    if exchange is None or not plan.is_apart or plan.sites is None:
        return ""
    sent = sum(exchange.sent(stage, count) * parts for stage, parts in _replicas(plan))
    every = sum(durations.reduced_bytes(stage, count) * parts for stage, parts in _replicas(plan))
    share = percent_text(sent / every, 1) if every else percent_text(0.0)
    most = "at most " * exchange.is_bound
    return (
        f"{count} sites exchange by {plan.sites.words}: each sends {most}{bytes_text(sent)} after "
        f"an update, on average, {share} of a sum of the gradients. That is counted as if it were "
        "spread evenly over the updates. A site is ahead of another by "
        f"{count_text(plan.sites.period, 'update')} at most: then it waits for it. What it does to "
        f"learning is not predicted. {OTHER_LABELS}"
    )


def _replicas(plan: Plan) -> list[tuple[int, int]]:
    return [(number, stage.replicas) for number, stage in enumerate(plan.partition.stages)]
