"""Planning without a worker: partitions ranked by what the simulator predicts."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from app.commands.options.acting import connect
from app.commands.options.shared import Json, taking
from app.commands.planning import PlanOptions, options
from app.differences import (
    UNKNOWN_FIGURES,
    UNKNOWN_WATTS,
    energy_words,
    figure_name,
    figure_words,
    money_words,
    target_words,
    time_words,
)
from app.exports.answers import HEAD, row
from app.formats import between, count, seconds
from app.naming import fallback_words
from app.terminal import err, out, print_json, print_table
from backend.cluster.cluster import Cluster
from backend.cluster.fewer import machines
from backend.comparison.pareto import pareto as pareto_of
from backend.errors import InvalidInput, StageflowError
from backend.planning.plan import Plan
from backend.prediction.across_sites import planned_first
from backend.prediction.answer import Answer, by_order, cut_by_hand
from backend.prediction.answer import compare as compared
from backend.prediction.fallback import Fallback
from backend.prediction.fallbacks import fallbacks
from backend.prediction.question import PLANNER_NAMES, Question
from backend.prediction.relaxed import Relaxed, relaxed, without_limits
from backend.prediction.watch import UNWATCHED, Watch
from backend.prediction.without_work import idle_words, with_all_devices

PATIENCE = 10.0
"""Seconds for the plans for fewer machines."""


@taking(options)
def plan(
    asked: PlanOptions,
    planner: Annotated[
        str,
        typer.Option(help=f"{', '.join(PLANNER_NAMES)} (default: all, ranked)."),
    ] = "",
    cut: Annotated[
        str,
        typer.Option(help="By hand: where each stage stops and its replicas, such as 14x3-20x1."),
    ] = "",
    order: Annotated[
        Path | None,
        typer.Option(
            help="By an order of actions from a file (as stageflow program import reads it), in "
            "the place of a planner."
        ),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the best one, to run it.")] = False,
    fewer: Annotated[
        bool, typer.Option("--fewer", help="Also its fallbacks, on one and two machines fewer.")
    ] = False,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto",
            help="Only plans than which no other is as good in seconds, joules and money of a "
            "sample and better in one.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Partition a profiled model over a cluster.

    Examples:

        stageflow plan --profile 1 --devices 2 --save

        stageflow plan --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json

        stageflow plan --profile 1 --cluster servers.yaml --planner best --memory 16e9

        stageflow plan --profile vgg16/graph.txt --measured-on v100 --on a100 --devices 8

        stageflow plan --profile 1 --devices 4 --cut 14x3-20x1

        stageflow plan --profile 1 --devices 4 --schedule synthesised --planner straight --save

        stageflow plan --profile 1 --devices 4 --order order.csv --save

        stageflow plan --profile 1 --cluster servers.yaml --fewer

        stageflow plan --profile 1 --devices 2 --target 0.95

        stageflow plan --profile 1 --cluster boards.yaml --on cluster --pareto
    """
    question = replace(asked.question, planner=planner)
    given = _given(question, cut, order)
    answers = [given] if given else asked.aim.rank(question)
    if pareto:
        answers = [each for each, best in zip(answers, pareto_of(answers), strict=True) if best]
    plan_id = _save(asked.profile_id, question.cluster, answers[0]) if save else None
    found = _for_fewer(question, answers[0].prediction.plan) if fewer else ()
    if as_json:
        plans = [asked.plain(each) for each in answers]
        return print_json({"plan_id": plan_id, **plans[0], "fallbacks": found, "plans": plans})
    title = f"plans for {question.profile.name} on {_devices(question)}"
    (_pareto_table if pareto else _table)(title, asked, answers)
    if likely := between(answers[0].prediction.seconds_range, seconds):
        out.print(f"Nine of ten runs are expected to take {likely} per minibatch.", highlight=False)
    for reason in answers[0].reasons:
        out.print(reason, highlight=False)
    if not given and (idle := _idle(question, answers)):
        out.print(idle, highlight=False)
    for less in [] if given else _relaxed(question, answers[0]):
        faster = less.prediction
        said = f"{less.where}: {faster.plan.label} at {faster.samples_per_second:,.0f} samples/s."
        out.print(said, highlight=False)
    if words := answers[0].limit_words:
        out.print(words, highlight=False)
    for note in question.profile.notes:
        if note in answers[0].reasons:
            continue  # it was told first of all
        out.print(f"note: {note}", highlight=False, style="dim")
    if found:
        out.print(f"{fallback_words(found)}.", highlight=False)
    if plan_id is not None:
        out.print(f"saved as plan {plan_id}. Run it: stageflow run --plan {plan_id}")
    return None


def _given(question: Question, cut: str, order: Path | None) -> Answer | None:
    """What is asked for by hand: an order, a cut or both."""
    if order:
        return by_order(question, order.read_bytes(), cut)
    return cut_by_hand(question, cut) if cut else None


def _for_fewer(question: Question, plan: Plan) -> tuple[Fallback, ...]:
    end = time.monotonic() + PATIENCE
    watch = Watch(stop=lambda: time.monotonic() > end)
    return fallbacks(question, plan, machines(question.cluster), watch)


def _idle(question: Question, answers: Sequence[Answer]) -> str:
    devices = question.cluster.num_devices
    return idle_words(answers[0], with_all_devices(answers, devices), devices)


def _relaxed(question: Question, found: Answer) -> Iterator[Relaxed]:
    """The faster plans that a limit of the question forbids, as far as planners find some at
    once."""
    for freed in without_limits(question, found.prediction):
        with suppress(StageflowError):
            free = planned_first(freed, UNWATCHED)
            if less := relaxed(freed, free, found.prediction):
                yield less


def _save(profile_id: int | None, cluster: Cluster, found: Answer) -> int:
    if profile_id is None:
        raise InvalidInput(
            "only a plan for a stored profile can be saved",
            "Profile the model first: stageflow profile MODEL, then --profile ID.",
        )
    stored = connect().plans.save(profile_id, cluster, found.prediction)
    err.print(f"plan {stored.id} saved")
    return stored.id


@taking(options)
def compare(asked: PlanOptions, as_json: Json = False) -> None:
    """Every planner and schedule side by side, the fastest first.

    Examples:

        stageflow compare --profile 1 --devices 4

        stageflow compare --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json
    """
    question = asked.question
    found = list(compared(question))
    answers = asked.aim.ranked(reply.answer for reply in found if reply.answer)
    refused = [reply for reply in found if reply.fault]
    if as_json:
        faults = [
            {"planner": r.planner, "schedule": r.schedule, "fault": str(r.fault)} for r in refused
        ]
        plans = [asked.plain(answer) for answer in answers]
        return print_json({"plans": plans, "refused": faults})
    title = f"{question.profile.name} on {_devices(question)}"
    _table(title, asked, answers)
    for line in refused:
        out.print(f"{line.planner} · {line.schedule or 'any schedule'}: {line.fault}", style="dim")
    return None


def _table(title: str, asked: PlanOptions, answers: Sequence[Answer]) -> None:
    """With a column for what they are ranked by, where that is not samples/s."""
    aim = asked.aim
    if aim.fewest is not None:
        figure = aim.fewest.figure
        rows = ([*row(each), figure_words(figure, each)] for each in answers)
        print_table(title, [*HEAD, figure_name(figure)], rows)
        if all(aim.fewest.of(each) is None for each in answers):
            out.print(UNKNOWN_FIGURES[figure], highlight=False)
        return None
    if aim.target is None:
        return print_table(title, HEAD, map(row, answers))
    known = [aim.time_of(each) for each in answers]
    rows = ([*row(each), time_words(time)] for each, time in zip(answers, known, strict=True))
    print_table(title, [*HEAD, f"to {target_words(aim.target)}"], rows)
    if not any(known):
        out.print("No run of this model has come to the target: the ranking is by samples/s.")
    return None


def _pareto_table(title: str, asked: PlanOptions, answers: Sequence[Answer]) -> None:
    """By the measures of which they are the best."""
    rows = (
        [
            each.prediction.plan.short_label,
            each.prediction.plan.planner,
            seconds(each.seconds_per_sample),
            energy_words(each.energy),
            money_words(each.money),
        ]
        for each in answers
    )
    print_table(title, ["plan", "planner", "per sample", "energy", "per million samples"], rows)
    if not any(each.energy for each in answers):
        out.print(UNKNOWN_WATTS, highlight=False)


def _devices(question: Question) -> str:
    return count(question.cluster.num_devices, "device")
