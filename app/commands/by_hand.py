"""What ranks need to be started by hand: a folder, and the command that starts them there."""

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from app.server import launch
from app.terminal import out
from backend.bootstrap import Backend
from backend.codec import to_json
from backend.errors import InvalidInput
from backend.runs.request.spec import RunSpec

ByHandOption = Annotated[
    Path | None,
    typer.Option(
        "--print-command",
        metavar="FOLDER",
        help="Run nothing: put what ranks need into FOLDER, and print the line that starts them.",
    ),
]


def print_command(backend: Backend, spec: RunSpec, folder: Path) -> None:
    """Fill the folder, which must be new or empty, and print the line for a shell. Raises
    `InvalidInput`, and what `submit` raises."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not an empty folder", "Give the path of a new one.")
    checked = to_json(RunSpec, backend.runs.checked(spec))
    told = subprocess.run(
        launch.agent_command("workers.by_hand", str(folder.absolute())),
        input=checked,
        env=launch.environment(backend.settings),
        capture_output=True,
        check=False,
    )
    if told.returncode:
        message, _, advice = told.stderr.decode().strip().rpartition("\n")
        raise InvalidInput(message or advice, advice if message else "")
    out.print(told.stdout.decode().rstrip(), highlight=False, soft_wrap=True)
