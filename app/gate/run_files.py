"""Files of runs for a person's browser: handed on in pieces, a part of one where that is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from app.api.caller import ACTOR, Caller
from app.api.problems import answer
from backend.errors import NotFound
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.history.records import StoredArtifact


def artifact_link(run_id: int, artifact: StoredArtifact) -> str:
    """Where a browser finds a file that was kept with a run."""
    return f"/files/runs/{run_id}/{quote(artifact.name)}"


def checkpoint_link(checkpoint: Checkpoint, name: str) -> str:
    """Where a browser finds a file of a checkpoint."""
    return f"/files/checkpoints/{checkpoint.id}/{quote(name)}"


def file_routes() -> list[BaseRoute]:
    """Behind the gate, for whoever sees the run."""
    return [
        Route("/files/runs/{id:int}/{name:path}", _handing(_artifact)),
        Route("/files/checkpoints/{id:int}/{name}", _handing(_file_of_checkpoint)),
    ]


def _handing(find: Callable[[Caller, int, str], tuple[Path, str]]) -> Any:
    async def handle(request: Request) -> Response:
        id, name = request.path_params["id"], request.path_params["name"]
        try:
            caller = Caller(request.scope[ACTOR])
            path, saved_as = await run_in_threadpool(find, caller, id, name)
        except Exception as error:
            return answer(error)
        return FileResponse(path, media_type="application/octet-stream", filename=saved_as)

    return handle


def _artifact(caller: Caller, id: int, name: str) -> tuple[Path, str]:
    return _there(caller.runs(id).artifacts.path(id, name)), f"run-{id}-{Path(name).name}"


def _file_of_checkpoint(caller: Caller, id: int, name: str) -> tuple[Path, str]:
    checkpoint = caller.services().runs.checkpoints.get(id)
    caller.runs(checkpoint.run_id)
    if name not in {file.name for file in checkpoint.files}:
        raise NotFound(f"checkpoint {id} has no file {name!r}")
    saved_as = f"run-{checkpoint.run_id}-update-{checkpoint.mark.step}-{name}"
    return _there(checkpoint.folder / name), saved_as


def _there(path: Path) -> Path:
    if not path.is_file():
        raise NotFound(f"{path.name} is not on this machine")
    return path
