"""`stageflow tracker`: runs in TensorBoard, MLflow, and Weights & Biases."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.naming import followed_words
from app.server import launch
from app.terminal import out, print_json, print_table, warn
from backend import bootstrap
from backend.bootstrap import Backend
from backend.definitions.parameters import assignments
from backend.errors import InvalidInput, StageflowError
from backend.runs.history.followed import Followed
from backend.trackers.catalog import CATALOG

LOOK = 1.0
"""Seconds between two looks at what is due."""

app = typer.Typer(help="Follow runs in experiment trackers.", no_args_is_help=True)
RunNumber = Annotated[int, typer.Argument(help="The run's id.", show_default=False)]
Name = Annotated[str, typer.Argument(help=f"One of: {', '.join(CATALOG)}.", show_default=False)]


@app.command("list")
def list_trackers(run_id: RunNumber, as_json: Json = False) -> None:
    """Say where a run is followed, and how that goes.

    Example:

        stageflow tracker list 42
    """
    found = connect().trackers.list(run_id)
    if as_json:
        return print_json(list(found))
    return print_table(
        f"run {run_id}: followed in {formats.count(len(found), 'tracker')}",
        ["tracker", "state", "points", "where", "problem"],
        [
            [each.tracker, followed_words(each), each.sent, _where(each), each.error]
            for each in found
        ],
    )


@app.command("follow")
def follow_run(run_id: RunNumber, name: Name) -> None:
    """Send a run to a tracker, or go on where that was given up or stopped. An ended run too.

    Example:

        stageflow tracker follow 42 mlflow
    """
    _say(connect().trackers.follow(run_id, name))


@app.command("stop")
def stop_run(run_id: RunNumber, name: Name) -> None:
    """Send no more of a run to a tracker. What it has stays there.

    Example:

        stageflow tracker stop 42 wandb
    """
    _say(connect().trackers.stop(run_id, name))


@app.command("import")
def import_run(
    run: Annotated[
        str, typer.Argument(help="MLflow's number of it, or its page.", show_default=False)
    ],
    model: Annotated[str, typer.Option(help="The model that it is a run of, as NAME or zoo name.")],
    names: Annotated[
        list[str] | None, typer.Option("--as", help="A metric's name here: THEIRS=OURS.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take over a run's metrics, parameters and tags from the MLflow that STAGEFLOW_TRACKERS names.

    Example:

        stageflow tracker import 017ab369109d4347989bd76af296c7a4 --model vgg_digits --as f1_val=f1
    """
    backend = connect()
    definition = backend.definitions.resolve(model)
    found = backend.imports.bring(run, definition.id, assignments(names or [], "--as"))
    if as_json:
        return print_json({"id": found.id})
    return out.print(f"run {found.id} is {found.name}, imported from {run}", highlight=False)


@app.command("send")
def send() -> None:
    """Send what runs measure to the trackers in STAGEFLOW_TRACKERS, until Ctrl-C. `stageflow up`
    does this by itself; where the dashboard is started otherwise, this is started beside it.

    Example:

        STAGEFLOW_TRACKERS=mlflow+http://tracking:5000 stageflow tracker send
    """
    launch.stop_on_sigterm()
    backend, ends = bootstrap.connect(), Event()
    names = list(backend.trackers.known)
    if not names:
        raise InvalidInput("STAGEFLOW_TRACKERS names no tracker", "For example: tensorboard")
    for tracker in backend.trackers.known.values():
        out.print(f"{tracker.title}: {tracker.where}", highlight=False)
    with ThreadPoolExecutor(len(names)) as threads:  # one that hangs holds up no other
        loops = [threads.submit(_send_to, name, backend, ends) for name in names]
        try:
            for loop in loops:
                loop.result()
        finally:
            ends.set()
    backend.following.close()


def _send_to(name: str, backend: Backend, ends: Event) -> None:
    while not ends.is_set():
        try:
            more = backend.following.turn(name)
        except StageflowError as fault:  # such as a database that restarts
            warn(f"{name}: {fault}")
            more = 0
        if not more:
            ends.wait(LOOK)


def _say(followed: Followed) -> None:
    words = f"run {followed.run_id} in {followed.tracker}: {followed_words(followed)}"
    out.print(words, highlight=False)


def _where(followed: Followed) -> str:
    return followed.place.url or followed.place.remote
