"""Who makes a request of the API, and the services in their name."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.api.problems import Refused
from app.server.connection import connected
from backend.bootstrap import Backend
from backend.people.rights import Actor
from backend.services.runs.runs import RunService

ACTOR = "stageflow.actor"
"""Where in an ASGI scope the gate leaves who acts."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whom the gate let in."""

    actor: Actor

    def services(self, project_id: int | None = None) -> Backend:
        """In the caller's name; in one project where one is named. Blocks. Raises `NotFound`, and
        what `connected` raises."""
        found = connected().acting(self.actor)
        return found.within(project_id) if project_id else found

    def runs(self, run_id: int) -> RunService:
        """The service of runs. Raises `NotFound` where the caller sees no such run."""
        runs = self.services().runs
        runs.get(run_id)
        return runs


async def caller(request: Request) -> Caller:
    """Raises `Refused` (401) where no gate stood before this route."""
    actor = request.scope.get(ACTOR)
    if not isinstance(actor, Actor):
        raise Refused(401, "nobody let you in", "Mount the routes behind app.gate.gate.Gate.")
    return Caller(actor)


CurrentCaller = Annotated[Caller, Depends(caller)]
