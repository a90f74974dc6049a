"""Runs of others, brought into the history to be compared with runs of here."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from backend.people.rights import Right
from backend.runs.events import ACCURACY
from backend.runs.history.brought import TheirRun, renamed
from backend.runs.request.spec import ImportedSpec
from backend.runs.run import Run, RunSummary
from backend.services.people.access import Access
from backend.services.runs.stores import Stores
from backend.storage.runs.brought import SqlBrought
from backend.trackers.mlflow import Mlflow
from backend.trackers.mlflow_history import history
from backend.trackers.tracker import Tracker


@dataclass(frozen=True)
class ImportService:
    """From the trackers that settings name, and from no other address: a person's words lead this
    machine nowhere else."""

    _store: SqlBrought
    _stores: Stores
    _known: Mapping[str, Tracker]
    _access: Access

    def bring(self, remote: str, definition_id: int, names: Mapping[str, str]) -> Run:
        """Keep MLflow's run `remote` (its number, or its page's address) beside the runs of a
        model, its metrics under other names where `names` has some. Raises `NotFound`,
        `InvalidInput` where MLflow is not set up or the run is here, `TrackerAway`, and
        `TrackerRefuses`."""
        project = self._stores.definitions.get(definition_id).project_id
        self._access.require(Right.EDIT, "import", f"run {remote[:100]}", project)
        self._stores.tracking.check("mlflow")
        tracker = self._known["mlflow"]
        assert isinstance(tracker, Mlflow)
        found = renamed(history(tracker.server, remote), names)
        spec = ImportedSpec(
            definition_id, found.tracker, found.remote, found.url, dict(found.parameters)
        )
        number = self._store.add(found, spec, summary_of(found), self._access.actor.name)
        return self._stores.runs.get(number)


def summary_of(found: TheirRun) -> RunSummary:
    """The last finite value of each metric."""
    last: dict[str, float] = {}
    for name, points in found.metrics.items():
        finite = [point.value for point in points if isfinite(point.value)]
        if finite:
            last[name] = finite[-1]
    return RunSummary(
        accuracy=last.pop(ACCURACY, None),
        loss=last.pop("loss", None),
        samples_per_second=last.pop("throughput", None),
        metrics=last,
    )
