"""Files of runs for a person's browser: handed on in pieces, a part of one where that is asked."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from app.api.caller import ACTOR, Caller
from app.api.files import artifact_file, checkpoint_file
from app.api.problems import answer
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
        Route("/files/runs/{id:int}/{name:path}", _handing(artifact_file)),
        Route("/files/checkpoints/{id:int}/{name}", _handing(checkpoint_file)),
    ]


def _handing(find: Callable[[Caller, int, str], Response]) -> Any:
    async def handle(request: Request) -> Response:
        id, name = request.path_params["id"], request.path_params["name"]
        try:
            caller = Caller(request.scope[ACTOR])
            return await run_in_threadpool(find, caller, id, name)
        except Exception as error:
            return answer(error)

    return handle
