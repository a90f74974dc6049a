"""The operations of the REST API, and their OpenAPI 3.1 document."""

from typing import Any

from fastapi.openapi.utils import get_openapi

from app.api.operation import Operation
from app.api.operations import (
    clusters,
    comments,
    definitions,
    nodes,
    plans,
    profiles,
    programs,
    projects,
    records,
    runs,
    sweeps,
    trackers,
    views,
)
from app.api.problems import MEDIA
from app.version import stageflow_version

DESCRIPTION = (
    "Everything that the pages do. Times are in seconds, sizes in bytes, moments Unix times or ISO "
    "8601 with a zone. Errors are JSON with what is wrong and what to do. Send 'Authorization: "
    "Bearer TOKEN' where STAGEFLOW_API_TOKEN is set."
)
NOUNS = (
    *(definitions, profiles, clusters, plans, programs, runs, comments, views, records),
    *(trackers, sweeps, nodes, projects),
)
OPERATIONS: tuple[Operation, ...] = tuple(
    route for noun in NOUNS for route in noun.router.routes if isinstance(route, Operation)
)


def document() -> dict[str, Any]:
    """As plain values, ready for JSON."""
    found = get_openapi(
        title="Stageflow",
        version=stageflow_version(),
        description=DESCRIPTION,
        routes=OPERATIONS,
    )
    for ways in found["paths"].values():
        for way in ways.values():
            way.setdefault("parameters", [])
            problem = way["responses"]["default"]
            problem["content"] = {MEDIA: next(iter(problem["content"].values()))}
    found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return found | {"security": [{"token": []}]}
