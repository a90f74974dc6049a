"""Every planner under every schedule, in one table."""

from app.commands.output import out, print_json, print_table
from app.commands.planning import HEAD, Asked, Json, asking, plain, row
from backend.prediction.answer import compare as compared


@asking
def compare(asked: Asked, as_json: Json = False) -> None:
    """Every planner and schedule side by side, the fastest first.

    Examples:

        stageflow compare --profile 1 --devices 4

        stageflow compare --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json
    """
    question = asked.question
    rows = list(compared(question))
    answers = [row.answer for row in rows if row.answer]
    answers.sort(key=lambda answer: -answer.prediction.samples_per_second)
    refused = [row for row in rows if row.answer is None]
    if as_json:
        faults = [{"planner": r.planner, "schedule": r.schedule, "fault": r.fault} for r in refused]
        plans = [plain(question.profile, answer) for answer in answers]
        return print_json({"plans": plans, "refused": faults})
    title = f"{question.profile.name} on {question.cluster.num_devices} devices"
    print_table(title, HEAD, map(row, answers))
    for line in refused:
        out.print(f"{line.planner} · {line.schedule or 'any schedule'}: {line.fault}", style="dim")
    return None
