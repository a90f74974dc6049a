"""Plans in SQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import select

from backend.cluster.cluster import Cluster
from backend.codec import to_plain
from backend.prediction.prediction import Prediction
from backend.runs.history.labels import Change
from backend.runs.plans import PlanInUse, StoredPlan
from backend.storage.database import Database
from backend.storage.labels import check_free, free_name, label
from backend.storage.look_up import look_up, needed_by, value_of
from backend.storage.tables.tables import PlanRow, ProfileRow, RunRow


class SqlPlans:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, profile_id: int, cluster: Cluster, prediction: Prediction, name: str
    ) -> StoredPlan:
        """With the name "" it is named by its label, as far as that is free. Raises `NotFound` on
        an unknown profile, and `NameTaken`."""
        row = PlanRow(
            name=name,
            profile_id=profile_id,
            cluster=to_plain(Cluster, cluster),
            prediction=to_plain(Prediction, prediction),
            created_at=datetime.now(UTC),
        )
        with self._database.write() as session:
            project = look_up(session, ProfileRow, profile_id).project_id
            check_free(session, PlanRow, project, name)
            row.name = name or free_name(session, PlanRow, project, prediction.plan.label)
            session.add(row)
            session.flush()
            return value_of(StoredPlan, row)

    def get(self, plan_id: int) -> StoredPlan:
        """Raises `NotFound`."""
        return value_of(StoredPlan, self._database.get(PlanRow, plan_id))

    def label(self, plan_id: int, change: Change) -> StoredPlan:
        """Raises `NotFound` and `NameTaken`."""
        with self._database.write() as session:
            return value_of(StoredPlan, label(session, PlanRow, plan_id, change))

    def delete(self, plan_id: int) -> None:
        """Raises `NotFound`, and `PlanInUse` naming the runs that were launched by it."""
        with self._database.write() as session:
            row = look_up(session, PlanRow, plan_id)
            if text := needed_by(session, "run", RunRow, RunRow.plan_id == plan_id):
                raise PlanInUse(f"plan {plan_id} is needed by {text}", "Delete the runs first.")
            session.delete(row)

    def rates(self, plan_ids: Collection[int]) -> Mapping[int, float]:
        """The predicted samples/s of each."""
        rate = PlanRow.prediction["samples_per_second"].as_float()
        with self._database.read() as session:
            found = session.execute(select(PlanRow.id, rate).where(PlanRow.id.in_(plan_ids)))
            return {plan_id: known for plan_id, known in found if known}

    def list(self, profile_id: int | None = None) -> Sequence[StoredPlan]:
        """Newest first; None = of every profile."""
        query = select(PlanRow).order_by(PlanRow.id.desc())
        if profile_id is not None:
            query = query.where(PlanRow.profile_id == profile_id)
        return [value_of(StoredPlan, row) for row in self._database.rows(query)]
