"""Plans as they are stored, with what was predicted of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backend.cluster.cluster import Cluster
from backend.people.audit import Access
from backend.people.project import DEFAULT_PROJECT
from backend.people.rights import Right
from backend.planning.plan import Plan
from backend.prediction.prediction import Prediction
from backend.runs.profiles import ProfileStore


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
    """`listed` shows the chosen project's, `store` all that the actor sees."""

    def __init__(
        self, store: PlanStore, listed: PlanStore, profiles: ProfileStore, access: Access
    ) -> None:
        self._store = store
        self._listed = listed
        self._profiles = profiles
        self._access = access

    def save(
        self, profile_id: int, cluster: Cluster, prediction: Prediction, name: str = ""
    ) -> StoredPlan:
        """Keep a plan; its label names it by default. Raises `NotFound` on a bad profile id."""
        title = name or prediction.plan.label
        project = self._profiles.get(profile_id).project_id
        self._access.require(Right.EDIT, "save", f"plan {title}", project)
        return self._store.add(profile_id, cluster, prediction, title)

    def get(self, plan_id: int) -> StoredPlan:
        """Raises `NotFound`."""
        return self._store.get(plan_id)

    def list(self, profile_id: int | None = None) -> Sequence[StoredPlan]:
        """Newest first."""
        return self._listed.list(profile_id)
