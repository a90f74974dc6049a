"""Model definitions: add, list, read."""

from dataclasses import dataclass

from app.api.fields import Id
from app.api.operation import Call, File, Operation
from backend.definitions.definition import Definition
from backend.definitions.zoo import ZooEntry


@dataclass(frozen=True, slots=True)
class DefinitionQuery:
    """`project_id`: only the definitions of that project."""

    project_id: Id | None = None


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """A Python file as text, or one of the zoo by its name. `name` is what it is kept under,
    by default the file's; `project_id` where, by default in the first project that you see."""

    source: str = ""
    filename: str = "model.py"
    name: str | None = None
    zoo: str | None = None
    project_id: Id | None = None


def _add(call: Call) -> Definition:
    body: NewDefinition = call.body
    definitions = call.within(body.project_id).definitions
    if body.zoo is not None:
        return definitions.add_zoo(body.zoo)
    return definitions.add(body.filename, body.source.encode(), body.name)


def _source(call: Call) -> File:
    found = call.backend.definitions.get(call.id)
    data = call.backend.definitions.source(call.id)
    return File(data, found.filename, "text/x-python; charset=utf-8")


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
        "Its Python text.",
        _source,
        None,
        media="text/x-python",
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
