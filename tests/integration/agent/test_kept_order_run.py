"""A run by an order from a file, from the command to its last epoch, beside the same schedule."""

import json
from pathlib import Path

import pytest

from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.run import Run
from backend.runs.states import RunState
from tests.forked import Forked

pytestmark = pytest.mark.slow

PROFILE = Profile(
    "mlp",
    ModelGraph.chain(tuple(Layer(f"l{n}", "Linear", 1e-4, 2e-4, 10**4, 10**4) for n in range(8))),
    16,
)
CUT = "4x1-8x1"


def said(stack, *args: str) -> str:
    command = Forked("app.cli", *args, env=stack.variables)
    assert command.wait(120) == 0, command.err.read_text()
    return command.out.read_text()


@pytest.mark.timeout(400)
def test_a_run_by_an_order_learns_as_the_schedule_that_it_was_taken_from(
    stack, tmp_path: Path
) -> None:
    definition = stack.backend.definitions.add_zoo("mlp")
    profile = stack.backend.profiles.add(PROFILE, definition.id).id
    file = tmp_path / "order.csv"
    asked = ("--pipeline-size", "2", "--microbatches", "4", "--format", "csv")
    said(stack, "program", "export", "--schedule", "zb-h1", *asked, "-o", str(file))
    by_file, by_rule = (
        finished(stack, profile, *how)
        for how in (("--order", str(file)), ("--schedule", "zb-h1", "--microbatches", "4"))
    )
    for run, schedule in ((by_file, "custom"), (by_rule, "zb-h1")):
        assert (run.state, run.error) == (RunState.SUCCEEDED, None)
        assert run.spec.plan.schedule == schedule
    measured, other = (losses(stack, run) for run in (by_file, by_rule))
    assert len(measured) > 10
    assert measured == other
    assert ran(stack, by_file) == ran(stack, by_rule)
    assert bool(by_file.spec.plan.kept_order) != bool(by_rule.spec.plan.kept_order)


def finished(stack, profile: int, *how: str) -> Run:
    """Planned and launched by the command, trained by the agent."""
    asked = ("--profile", str(profile), "--devices", "2", "--cut", CUT, *how)
    plan = json.loads(said(stack, "plan", *asked, "--save", "--json"))["plan_id"]
    said(stack, "run", "--plan", str(plan), "--epochs", "1", "--detach")
    return stack.until_final(stack.backend.runs.list().runs[0].id)


def losses(stack, run: Run) -> list[float]:
    return [point.value for point in stack.backend.runs.metrics.list(run.id, "loss")]


def ran(stack, run: Run) -> set[tuple[int, int, object]]:
    """What each rank did, in its order."""
    spans = stack.backend.runs.spans.timeline(run.id, "measured").spans
    return {(span.rank, span.index, span.action) for span in spans}
