"""Plans that people keep."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.people.rights import Right
from backend.prediction.prediction import Prediction
from backend.runs.plans import StoredPlan
from backend.services.people.access import Access
from backend.storage.plans import SqlPlans
from backend.storage.profiles import SqlProfiles


@dataclass(frozen=True)
class PlanService:
    """`listed` shows the chosen project's, `store` all that the actor sees."""

    _store: SqlPlans
    _listed: SqlPlans
    _profiles: SqlProfiles
    _access: Access

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
