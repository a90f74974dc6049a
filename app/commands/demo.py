"""`stageflow demo`: the whole job on the bundled example, from definition to trained model."""

from typing import Annotated

import typer

from app import example, formats
from app.commands.follow import follow
from app.commands.jobs import submit
from app.commands.serve import Host, Port, settings_for
from app.server import launch
from app.server.watch import watch
from app.terminal import err, out, print_table
from backend.bootstrap import connect
from backend.runs.plans import StoredPlan
from backend.runs.run import Run
from backend.storage import schema


def demo(
    serve: Annotated[bool, typer.Option(help="Keep the dashboard up afterwards.")] = True,
    devices: Annotated[int, typer.Option(min=1, help="Processes to plan for.")] = example.DEVICES,
    epochs: Annotated[int, typer.Option(min=1)] = example.EPOCHS,
    target: Annotated[float, typer.Option(min=0, max=1)] = example.TARGET,
    host: Host = None,
    port: Port = None,
) -> None:
    """Profile, plan and train the bundled example, and show it on the dashboard.

    Examples:

        stageflow demo

        stageflow demo --no-serve --epochs 5
    """
    launch.stop_on_sigterm()
    settings = settings_for(host, port)
    launch.check_port(settings.host, settings.port)
    schema.upgrade(settings)
    backend = connect(settings)
    url = settings.local_address
    with (
        launch.redis(settings) as redis,
        launch.dashboard(settings) as dashboard,
        launch.agent(backend) as agent,
    ):
        err.print(f"Dashboard: {url}", highlight=False)
        profiled = follow(backend, submit(backend, *example.profiling(backend)))
        assert profiled.summary.profile_id is not None
        plan, reason = example.plan(backend, profiled.summary.profile_id, devices)
        err.print(f"Plan {plan.plan.label}: {reason}", highlight=False)
        run = follow(backend, submit(backend, *example.training(backend, plan, epochs, target)))
        _summary(plan, run, f"{url}/run?id={run.id}")
        if serve:
            out.print("The dashboard stays up. Stop with Ctrl-C.")
            watch(dashboard, agent, redis)


def _summary(plan: StoredPlan, run: Run, url: str) -> None:
    predicted, measured = plan.prediction, run.summary
    print_table(
        "Demo",
        ["", ""],
        [
            ["run", run.id],
            ["plan", predicted.plan.label],
            ["predicted per minibatch", formats.seconds(predicted.seconds_per_minibatch)],
            ["measured per minibatch", formats.seconds(measured.seconds_per_minibatch)],
            ["predicted bubble", formats.percent(predicted.bubble)],
            ["measured bubble", formats.percent(measured.bubble)],
            ["accuracy, held out", formats.percent(measured.accuracy)],
            ["page", url],
        ],
    )
