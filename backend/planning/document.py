"""A plan as JSON with a format name and a version, and back."""

from dataclasses import dataclass
from typing import Literal

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.planning.plan import Plan

FORMAT: Literal["stageflow-plan"] = "stageflow-plan"
VERSION: Literal[1] = 1


@dataclass(frozen=True)
class _Document:
    format: Literal["stageflow-plan"]
    version: Literal[1]
    plan: Plan


def write_plan(plan: Plan) -> bytes:
    """`plan` as JSON: {"format": "stageflow-plan", "version": 1, "plan": {...}}."""
    return to_json(_Document, _Document(FORMAT, VERSION, plan))


def read_plan(data: bytes | str) -> Plan:
    """The plan that `write_plan` wrote; raises `InvalidInput` naming the faulty field. Whether
    it is one for a profile and a cluster, `backend.prediction.predict.check_plan` says."""
    try:
        document: _Document = from_json(_Document, data)
    except InvalidInput as fault:
        raise InvalidInput(f"not a plan: {fault}", "Export the plan again.") from None
    return document.plan
