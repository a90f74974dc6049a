"""Every planner under every schedule, in one table."""

from app.commands.options.shared import Json, taking
from app.commands.planning import HEAD, PlanOptions, options, plain, row
from app.terminal import out, print_json, print_table
from backend.prediction.answer import compare as compared


@taking(options)
def compare(asked: PlanOptions, as_json: Json = False) -> None:
    """Every planner and schedule side by side, the fastest first.

    Examples:

        stageflow compare --profile 1 --devices 4

        stageflow compare --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json
    """
    question = asked.question
    found = list(compared(question))
    answers = [reply.answer for reply in found if reply.answer]
    answers.sort(key=lambda answer: -answer.prediction.samples_per_second)
    refused = [reply for reply in found if reply.fault]
    if as_json:
        faults = [
            {"planner": r.planner, "schedule": r.schedule, "fault": str(r.fault)} for r in refused
        ]
        plans = [plain(question.profile, answer) for answer in answers]
        return print_json({"plans": plans, "refused": faults})
    title = f"{question.profile.name} on {question.cluster.num_devices} devices"
    print_table(title, HEAD, map(row, answers))
    for line in refused:
        out.print(f"{line.planner} · {line.schedule or 'any schedule'}: {line.fault}", style="dim")
    return None
