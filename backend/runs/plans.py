"""Plans as they are stored, with what was predicted of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backend.cluster.cluster import Cluster
from backend.people.audit import Access
from backend.people.rights import Right
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

    @property
    def plan(self) -> Plan:
        return self.prediction.plan


class PlanStore(Protocol):
    def add(
        self, profile_id: int, cluster: Cluster, prediction: Prediction, name: str
    ) -> StoredPlan:
        """Raises `NotFound` on an unknown profile."""
        ...

    def get(self, plan_id: int) -> StoredPlan:
        """Raises `NotFound`."""
        ...

    def list(self, profile_id: int | None) -> Sequence[StoredPlan]:
        """Newest first; None = of every profile."""
        ...


class PlanService:
    def __init__(self, store: PlanStore, access: Access) -> None:
        self._store = store
        self._access = access

    def save(
        self, profile_id: int, cluster: Cluster, prediction: Prediction, name: str = ""
    ) -> StoredPlan:
        """Keep a plan; its label names it by default. Raises `NotFound` on a bad profile id."""
        title = name or prediction.plan.label
        self._access.require(Right.EDIT, "save", f"plan {title}")
        return self._store.add(profile_id, cluster, prediction, title)

    def get(self, plan_id: int) -> StoredPlan:
        """Raises `NotFound`."""
        return self._store.get(plan_id)

    def list(self, profile_id: int | None = None) -> Sequence[StoredPlan]:
        """Newest first."""
        return self._store.list(profile_id)
