"""Plans that people keep."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.comparison.plans import PlanDifferences, plan_differences
from backend.people.rights import Right
from backend.prediction.prediction import Prediction
from backend.runs.history.labels import Change, named
from backend.runs.plans import StoredPlan, plan_title
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
        """Keep a plan; its label names it by default, with a number where the project has that
        already. Raises `NotFound` on a bad profile id, `InvalidInput` on a bad name, and
        `NameTaken`."""
        title = plan_title(name) if name else ""
        project = self._profiles.get(profile_id).project_id
        self._access.require(Right.EDIT, "save", f"plan {title or prediction.plan.label}", project)
        return self._store.add(profile_id, cluster, prediction, title)

    def label(self, plan_id: int, change: Change) -> StoredPlan:
        """Change name, note or tags. Raises `NotFound`, `InvalidInput` and `NameTaken`."""
        kept, new = self.get(plan_id), named(change, plan_title)
        self._access.require(Right.EDIT, "label", f"plan {plan_id}", kept.project_id)
        return self._store.label(plan_id, new)

    def delete(self, plan_id: int) -> StoredPlan:
        """What it was. Raises `NotFound`, and `PlanInUse` naming the runs launched by it."""
        kept = self.get(plan_id)
        self._access.require(Right.EDIT, "delete", f"plan {plan_id}", kept.project_id)
        self._store.delete(plan_id)
        return kept

    def get(self, plan_id: int) -> StoredPlan:
        """Raises `NotFound`."""
        return self._store.get(plan_id)

    def differences(self, first_id: int, second_id: int) -> PlanDifferences:
        """What differs between two kept plans. Raises `NotFound`."""
        first, second = self.get(first_id), self.get(second_id)
        profiles = [self._profiles.get(kept.profile_id).profile for kept in (first, second)]
        return plan_differences(first, profiles[0], second, profiles[1])

    def list(self, profile_id: int | None = None) -> Sequence[StoredPlan]:
        """Newest first."""
        return self._listed.list(profile_id)
