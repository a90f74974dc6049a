"""Every operation of the REST API, in the order in which it is documented."""

from app.api.operation import Operation
from app.api.operations import definitions, nodes, plans, profiles, projects, records, runs

PREFIX = "/api/v1"

OPERATIONS: tuple[Operation, ...] = (
    *definitions.OPERATIONS,
    *profiles.OPERATIONS,
    *plans.OPERATIONS,
    *runs.OPERATIONS,
    *records.OPERATIONS,
    *nodes.OPERATIONS,
    *projects.OPERATIONS,
)
