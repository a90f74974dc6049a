"""Plans as they are stored, with what was predicted of them."""

from dataclasses import dataclass
from datetime import datetime

from backend.cluster.cluster import Cluster
from backend.people.project import DEFAULT_PROJECT
from backend.planning.plan import Plan
from backend.prediction.prediction import Prediction


@dataclass(frozen=True, slots=True)
class StoredPlan:
    id: int
    name: str
    profile_id: int
    cluster: Cluster
    prediction: Prediction
    created_at: datetime
    project_id: int = DEFAULT_PROJECT

    @property
    def plan(self) -> Plan:
        return self.prediction.plan
