"""`stageflow up` and `stageflow worker`: what keeps running."""

import os
from typing import Annotated, NoReturn

import typer

from app.gate import exposure
from app.gate.rules import WELCOME
from app.server import launch
from app.server.watch import watch
from app.terminal import out
from backend.bootstrap import Backend, connect
from backend.settings import Settings, SignIn, load_settings
from backend.storage import revision, schema

Port = Annotated[int | None, typer.Option(help="Port of the dashboard (default 8501).")]
Host = Annotated[str | None, typer.Option(help="Address to listen on (default 127.0.0.1).")]


def settings_for(host: str | None = None, port: int | None = None) -> Settings:
    """The settings of the environment with what the command line overrides."""
    given = {"host": host, "port": port}
    return load_settings().model_copy(update={k: v for k, v in given.items() if v is not None})


def create_if_new(settings: Settings) -> None:
    """Lay out an empty database; one that holds an older schema is left for `db upgrade`."""
    now, _ = revision.current(settings)
    if now is None:
        schema.upgrade(settings)


def up(
    host: Host = None,
    port: Port = None,
    agent: Annotated[bool, typer.Option(help="Start a node agent on this machine too.")] = True,
) -> None:
    """Start the dashboard and a node agent, until Ctrl-C.

    The dashboard, the agent and the embedded Redis are restarted when they end by themselves, with
    a growing delay when they end early. After eight early ends in a row of the dashboard or the
    agent everything is stopped, with code 1.

    Examples:

        stageflow up

        stageflow up --port 9000 --no-agent
    """
    launch.stop_on_sigterm()
    settings = settings_for(host, port)
    exposure.check(settings)
    create_if_new(settings)
    backend = connect(settings)
    with (
        launch.redis(settings) as redis,
        launch.dashboard(settings) as dashboard,
        launch.sender(settings) as sender,
    ):
        out.print(f"Dashboard: {settings.local_address}   state: {settings.home}")
        tell_first_link(backend)
        if not agent:
            return watch(dashboard, sender, redis)
        with launch.agent(backend) as node:
            out.print(f"Node agent: {settings.node}   stop with Ctrl-C")
            return watch(dashboard, node, sender, redis)


def tell_first_link(backend: Backend) -> None:
    """Print the way in where people have to sign in and nobody can yet."""
    if backend.settings.sign_in is SignIn.OFF:
        return
    link = backend.accounts.first_link()
    if link:
        out.print("Nobody can sign in yet. This link creates the first account, once, for 3 days:")
        out.print(welcome_url(backend.settings, link))


def welcome_url(settings: Settings, link: str) -> str:
    """What somebody opens to set their password."""
    return f"{settings.address}{WELCOME}?link={link}"


def worker(
    for_run: Annotated[
        int | None,
        typer.Option(help="Carry one attempt of this run alone, without Redis, and end."),
    ] = None,
    place: Annotated[
        int | None,
        typer.Option(
            min=0, help="With --for-run: this machine's number (default: the cluster's, or 0)."
        ),
    ] = None,
) -> None:
    """Run a node agent in the foreground: it takes this machine's jobs from the queue.

    Examples:

        stageflow worker

        srun --ntasks-per-node=1 stageflow worker --for-run 12

        STAGEFLOW_REDIS_URL=redis://host/0 STAGEFLOW_DATABASE_URL=postgresql://... stageflow worker
    """
    settings = load_settings()
    connect(settings).close()
    if for_run is not None:
        where = [] if place is None else ["--place", str(place)]
        replaced_by(launch.agent_command("workers.run_agent", str(for_run), *where), settings)
    command = launch.agent_command()
    with launch.redis(settings):
        if settings.uses_embedded_redis:
            launch.foreground(command, settings)
        else:
            replaced_by(command, settings)


def replaced_by(command: list[str], settings: Settings) -> NoReturn:
    """This process becomes another program: signals reach it directly."""
    os.execve(command[0], command, launch.environment(settings))
