"""Planning without a worker: partitions ranked by what the simulator predicts."""

from typing import Annotated

import typer

from app.commands.acting import connect
from app.commands.output import err, out, print_json, print_table
from app.commands.planning import HEAD, Asked, Json, asking, plain, row
from app.cuts import read_cut
from app.naming import BY_HAND
from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput, StageflowError
from backend.planning.baselines import data_parallel
from backend.planning.catalog import PLANNERS, SEARCHES
from backend.prediction.answer import Answer, answer, judge
from backend.prediction.search import Question


@asking
def plan(
    asked: Asked,
    planner: Annotated[
        str,
        typer.Option(help=f"{', '.join((*PLANNERS, *SEARCHES))} (default: all, ranked)."),
    ] = "",
    cut: Annotated[
        str,
        typer.Option(help="By hand: where each stage stops and its replicas, such as 14x3-20x1."),
    ] = "",
    save: Annotated[bool, typer.Option("--save", help="Keep the best one, to run it.")] = False,
    as_json: Json = False,
) -> None:
    """Partition a profiled model over a cluster.

    Examples:

        stageflow plan --profile 1 --devices 2 --save

        stageflow plan --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json

        stageflow plan --profile 1 --cluster servers.yaml --planner best --memory 16e9

        stageflow plan --profile vgg16/graph.txt --measured-on v100 --on a100 --devices 8

        stageflow plan --profile 1 --devices 4 --cut 14x3-20x1
    """
    question = asked.question
    answers = _answers(question, planner, cut)
    plan_id = _save(asked.profile_id, question.cluster, answers[0]) if save else None
    if as_json:
        plans = [plain(question.profile, each) for each in answers]
        return print_json({"plan_id": plan_id, **plans[0], "plans": plans})
    title = f"plans for {question.profile.name} on {question.cluster.num_devices} devices"
    print_table(title, HEAD, map(row, answers))
    for reason in answers[0].reasons:
        out.print(reason, highlight=False)
    for note in question.profile.notes:
        out.print(f"note: {note}", highlight=False, style="dim")
    if plan_id is not None:
        out.print(f"saved as plan {plan_id}. Run it: stageflow run --plan {plan_id}")
    return None


def _answers(question: Question, planner: str, cut: str) -> list[Answer]:
    """What the planner says, or all of them, or what becomes of a partition by hand."""
    if not cut:
        return [answer(planner, question)] if planner else _ranked(question)
    if planner:
        raise InvalidInput("--cut is a partition by hand", "Leave --planner out.")
    whole = data_parallel(question.profile, question.cluster)
    partition = read_cut(cut, whole, question.cluster.num_devices)
    return [judge(question, question.predict(question.plan(BY_HAND, partition)))]


def _ranked(asked: Question) -> list[Answer]:
    """Each planner's, the most samples/s first; one of those that found the same plan."""
    found: dict[object, Answer] = {}
    faults: list[StageflowError] = []
    for name in (*PLANNERS, *SEARCHES):
        try:
            one = answer(name, asked)
        except StageflowError as fault:
            faults.append(fault)
            continue
        made = one.prediction.plan
        found.setdefault((made.partition, made.schedule, made.microbatch, made.lanes), one)
    if not found:
        raise faults[0]
    return sorted(found.values(), key=lambda one: -one.prediction.samples_per_second)


def _save(profile_id: int | None, cluster: Cluster, found: Answer) -> int:
    if profile_id is None:
        raise InvalidInput(
            "only a plan for a stored profile can be saved",
            "Profile the model first: stageflow profile MODEL, then --profile ID.",
        )
    stored = connect().plans.save(profile_id, cluster, found.prediction)
    err.print(f"plan {stored.id} saved")
    return stored.id
