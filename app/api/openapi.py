"""The OpenAPI 3.1 document, made from the operations that the routes are made from."""

import re
from dataclasses import fields
from typing import Any, Literal

from app.api.catalog import OPERATIONS, PREFIX
from app.api.operation import JSON, Operation
from app.api.problems import MEDIA
from app.problem import Problem
from app.version import stageflow_version
from backend.codec import schemas

PLACE = "#/components/schemas/{model}"
PATH_PARAMETER = re.compile(r"{(\w+)(?::(\w+))?}")
DESCRIPTION = (
    "Everything that the pages do. Seconds, bytes, Unix times or ISO 8601 with a zone. Errors "
    "are JSON with what is wrong and what to do. Send 'Authorization: Bearer TOKEN' where "
    "STAGEFLOW_API_TOKEN is set."
)
Kinds = dict[str, tuple[Any, Literal["validation", "serialization"]]]


def document() -> dict[str, Any]:
    """As plain values, ready for JSON."""
    found, definitions = schemas(_kinds(), PLACE)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        way = paths.setdefault(PREFIX + PATH_PARAMETER.sub(r"{\1}", operation.path), {})
        way[operation.method.lower()] = _operation(operation, found, definitions)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stageflow",
            "version": stageflow_version(),
            "description": DESCRIPTION,
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _kinds() -> Kinds:
    kinds: Kinds = {"problem": (Problem, "serialization")}
    for operation in OPERATIONS:
        kinds[f"{operation.name} query"] = (operation.query, "validation")
        if operation.body is not None:
            kinds[f"{operation.name} body"] = (operation.body, "validation")
        if operation.answer is not None:
            kinds[f"{operation.name} answer"] = (operation.answer, "serialization")
    return kinds


def _operation(
    operation: Operation, found: dict[str, Any], definitions: dict[str, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.group],
        "summary": operation.summary,
        "parameters": [
            *_path_parameters(operation),
            *_query_parameters(operation, _resolved(found[f"{operation.name} query"], definitions)),
        ],
        "responses": {
            str(operation.status): _answer(operation, found),
            "default": _content("What went wrong", MEDIA, found["problem"]),
        },
    }
    if operation.body is not None:
        body = found[f"{operation.name} body"]
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return described


def _answer(operation: Operation, found: dict[str, Any]) -> dict[str, Any]:
    if operation.answer is None:
        schema = {"type": "string", "contentMediaType": operation.media}
        return _content("The file", operation.media, schema)
    return _content("The answer", JSON, found[f"{operation.name} answer"])


def _content(description: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 1} if kind == "int" else {"type": "string"},
        }
        for name, kind in PATH_PARAMETER.findall(operation.path)
    ]


def _query_parameters(operation: Operation, schema: dict[str, Any]) -> list[dict[str, Any]]:
    properties = schema.get("properties", {})
    return [
        {"name": field.name, "in": "query", "schema": properties[field.name]}
        for field in fields(operation.query)
    ]


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A query's own fields stand in the parameters, so its definition is taken out."""
    reference = schema.get("$ref", "").rpartition("/")[2]
    return definitions.pop(reference) if reference in definitions else schema
