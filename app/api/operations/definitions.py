"""Model definitions: add, list, read."""

from dataclasses import dataclass

from pydantic import Base64Bytes

from app.api.fields import Id
from app.api.operation import Call, File, Operation
from backend.definitions.definition import Definition
from backend.definitions.zoo import ZooEntry

OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class DefinitionQuery:
    """`project_id`: only the definitions of that project."""

    project_id: Id | None = None


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


def _add(call: Call) -> Definition:
    body: NewDefinition = call.body
    definitions = call.within(body.project_id).definitions
    if body.zoo is not None:
        return definitions.add_zoo(body.zoo)
    data = body.source.encode() if body.content is None else body.content
    return definitions.add(body.filename, data, body.name)


def _source(call: Call) -> File:
    found = call.backend.definitions.get(call.id)
    data = call.backend.definitions.source(call.id)
    return File(data, found.filename, OCTETS)


OPERATIONS = (
    Operation(
        "list_definitions",
        "GET",
        "/definitions",
        "Every version of every model definition, newest first.",
        lambda call: list(call.within(call.query.project_id).definitions.list()),
        list[Definition],
        query=DefinitionQuery,
    ),
    Operation(
        "add_definition",
        "POST",
        "/definitions",
        "Keep a model definition; the same text under the same name is kept once.",
        _add,
        Definition,
        body=NewDefinition,
        status=201,
    ),
    Operation(
        "get_definition",
        "GET",
        "/definitions/{id:int}",
        "One version of a definition.",
        lambda call: call.backend.definitions.get(call.id),
        Definition,
    ),
    Operation(
        "get_definition_source",
        "GET",
        "/definitions/{id:int}/source",
        "Its file as it was given.",
        _source,
        None,
        media=OCTETS,
    ),
    Operation(
        "list_zoo",
        "GET",
        "/zoo",
        "The models that come with Stageflow.",
        lambda call: call.backend.definitions.zoo(),
        tuple[ZooEntry, ...],
    ),
)
