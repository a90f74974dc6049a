"""The `stageflow` command: everything the pages do, for a terminal and for scripts."""

import sys

import typer

from app.commands import (
    audit,
    backup,
    clusters,
    comments,
    demo,
    doctor,
    history,
    jobs,
    kept,
    models,
    plans,
    pools,
    program,
    project,
    serve,
    simulate,
    stacks,
    sweeps,
    traces,
    trackers,
    user,
    views,
)
from app.terminal import print_error
from backend.errors import StageflowError

app = typer.Typer(
    help="Plan, run and compare pipeline-parallel training.\n\nFirst time? Try: stageflow demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(backup.app, name="db")
app.add_typer(user.app, name="user")
app.add_typer(project.app, name="project")
app.add_typer(program.app, name="program")
app.add_typer(traces.app, name="trace")
app.add_typer(pools.app, name="pool")
app.add_typer(trackers.app, name="tracker")
app.add_typer(comments.app, name="comment")
app.add_typer(sweeps.app, name="sweep")
app.add_typer(views.views, name="views")
app.add_typer(clusters.clusters, name="clusters")
app.add_typer(kept.plans, name="plans")
app.add_typer(kept.profiles, name="profiles")
for command in (
    serve.up,
    demo.demo,
    serve.worker,
    doctor.doctor,
    models.models,
    jobs.profile,
    plans.plan,
    plans.compare,
    simulate.simulate,
    jobs.run,
    history.runs,
    history.show,
    history.logs,
    history.cancel,
    stacks.stacks,
    jobs.resume,
    history.attempts,
    history.delete,
    history.export,
    audit.audit,
    backup.backup,
    backup.restore,
    backup.move,
):
    app.command()(command)


def main() -> None:
    """Run the command line; an error that a person can mend ends it with code 1."""
    try:
        app()
    except StageflowError as error:
        print_error(error)
        sys.exit(1)
    except OSError as fault:
        place = f"{fault.filename!s:.200}: " if fault.filename else ""
        advice = "Check the path." if place else ""
        print_error(StageflowError(f"{place}{fault.strerror or fault}", advice))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
