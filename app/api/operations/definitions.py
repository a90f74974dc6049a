"""Model definitions: add, list, read."""

from dataclasses import dataclass

from app.api.operation import Call, File, Operation
from backend.definitions.definition import Definition
from backend.definitions.zoo import ZooEntry


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """A Python file as text, or one of the zoo by its name. `name` is what it is kept under,
    by default the file's."""

    source: str = ""
    filename: str = "model.py"
    name: str | None = None
    zoo: str | None = None


def _add(call: Call) -> Definition:
    body: NewDefinition = call.body
    definitions = call.backend.definitions
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
        lambda call: list(call.backend.definitions.list()),
        list[Definition],
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
