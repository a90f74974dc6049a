"""Model definitions: add, list, read."""

from dataclasses import dataclass

from fastapi import Response
from pydantic import Base64Bytes

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.files import OCTETS, download, file_of
from app.api.operation import router as operations
from backend.definitions.definition import Definition
from backend.definitions.zoo import ZooEntry

router = operations()


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """A file as text (`source`) or as base64 (`content`: a .pt2 program, weights), or one of the
    zoo by its name. `filename`'s ending says of which form it is. `name` is what it is kept
    under, by default the file's; `project_id` where, by default in the first project that you
    see. Files of more than about 6 MiB are for the Models page."""

    source: str = ""
    content: Base64Bytes | None = None
    filename: str = "model.py"
    name: str | None = None
    zoo: str | None = None
    project_id: Id | None = None


@router.get("/definitions")
def list_definitions(caller: CurrentCaller, project_id: Id | None = None) -> list[Definition]:
    """Every version of every model definition, newest first."""
    return list(caller.services(project_id).definitions.list())


@router.post("/definitions", status_code=201)
def add_definition(caller: CurrentCaller, new: NewDefinition) -> Definition:
    """Keep a model definition; the same text under the same name is kept once."""
    definitions = caller.services(new.project_id).definitions
    if new.zoo is not None:
        return definitions.add_zoo(new.zoo)
    data = new.source.encode() if new.content is None else new.content
    return definitions.add(new.filename, data, new.name)


@router.get("/definitions/{id:int}")
def get_definition(caller: CurrentCaller, id: Id) -> Definition:
    """One version of a definition."""
    return caller.services().definitions.get(id)


@router.get("/definitions/{id:int}/source", **file_of(OCTETS))
def get_definition_source(caller: CurrentCaller, id: Id) -> Response:
    """Its file as it was given."""
    definitions = caller.services().definitions
    return download(definitions.source(id), definitions.get(id).filename)


@router.get("/zoo")
def list_zoo(caller: CurrentCaller) -> tuple[ZooEntry, ...]:
    """The models that come with Stageflow."""
    return caller.services().definitions.zoo()
