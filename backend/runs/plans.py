"""Plans as they are stored, with what was predicted of them."""

from dataclasses import dataclass
from datetime import datetime

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.people.project import DEFAULT_PROJECT
from backend.planning.plan import Plan
from backend.prediction.prediction import Prediction

MAX_NAME = 120


class PlanInUse(InvalidInput):
    """Runs need a plan that is to be deleted; the message names them."""


def plan_title(name: str) -> str:
    """`name` without blanks around it. Raises `InvalidInput` where it cannot name a plan."""
    title = name.strip()
    if not title or len(title) > MAX_NAME or not title.isprintable():
        raise InvalidInput(
            f"{name[:MAX_NAME]!r} cannot name a plan", f"Use 1 to {MAX_NAME} printable characters."
        )
    return title


@dataclass(frozen=True, slots=True)
class StoredPlan:
    id: int
    name: str
    profile_id: int
    cluster: Cluster
    prediction: Prediction
    created_at: datetime
    project_id: int = DEFAULT_PROJECT
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        return self.prediction.plan
