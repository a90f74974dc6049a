"""Every operation of the REST API, in the order in which it is documented."""

from app.api.operation import Operation
from app.api.operations import (
    definitions,
    nodes,
    plans,
    profiles,
    programs,
    projects,
    records,
    runs,
)

NOUNS = (definitions, profiles, plans, programs, runs, records, nodes, projects)
OPERATIONS: tuple[Operation, ...] = tuple(
    route for noun in NOUNS for route in noun.router.routes if isinstance(route, Operation)
)
