"""MLflow: a run of an experiment.

A point that comes again is no second one: MLflow's key of it is run, metric, step, time and value.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from backend.runs.history.followed import TrackerPlace
from backend.runs.states import RunState
from backend.trackers.mlflow_server import MlflowServer, reading
from backend.trackers.tracker import Told, TrackerRefuses

Item = TypeVar("Item")
MOST_METRICS, MOST_OTHERS, LONGEST = 1000, 100, 6000
"""Of one request, https://mlflow.org/docs/latest/rest-api.html#log-batch; characters of a value."""
STRANGE = re.compile(r"[^\w\-. :/]")
"""Characters that no name of MLflow's has."""
ENDS = {RunState.SUCCEEDED: "FINISHED", RunState.FAILED: "FAILED", RunState.CANCELLED: "KILLED"}
KEY = "stageflow.key"


@dataclass(frozen=True, slots=True)
class Mlflow:
    server: MlflowServer
    name: str = "mlflow"
    title: str = "MLflow"
    pause: float = 2.0
    whole: bool = False

    @property
    def where(self) -> str:
        return f"{self.server.uri}, experiment {self.server.experiment}"

    def send(self, told: Told, place: TrackerPlace) -> TrackerPlace:
        client = self.server.client()
        with reading(place.remote):
            if not place.remote:
                place = self._begun(client, told)
            for some in _portions(_metrics(told), MOST_METRICS):
                client.log_batch(place.remote, metrics=some)
            if told.ended is not None:
                ended = ENDS[told.ended]
                client.set_terminated(place.remote, ended, end_time=int(1000 * told.finished))
        return place

    def _begun(self, client: Any, told: Told) -> TrackerPlace:
        """The run with its parameters; the one that an earlier try has made, where it has."""
        from mlflow.entities import Param

        experiment = self._experiment(client)
        found = client.search_runs([experiment], f"tags.`{KEY}` = '{told.key}'", max_results=1)
        run = found[0] if found else self._created(client, experiment, told)
        number = run.info.run_id
        given = [Param(_name(k), v[:LONGEST]) for k, v in told.parameters.items()]
        for some in _portions(given, MOST_OTHERS):
            client.log_batch(number, params=some)
        return TrackerPlace(number, self.server.page(experiment, number))

    def _created(self, client: Any, experiment: str, told: Told) -> Any:
        note = f"[{told.title}]({told.page}) in Stageflow"
        tags = {
            **{_name(label): "" for label in told.labels},
            **told.tags,
            KEY: told.key,
            "mlflow.note.content": note,
            "mlflow.source.name": told.page,
            "mlflow.user": told.tags.get("stageflow.owner", ""),
        }
        began = int(1000 * told.started)
        return client.create_run(experiment, start_time=began, tags=tags, run_name=told.title)

    def _experiment(self, client: Any) -> str:
        """Its number; made where there is none of the name."""
        name = self.server.experiment
        found = client.get_experiment_by_name(name)
        if found is None:
            return str(client.create_experiment(name))
        if found.lifecycle_stage != "active":
            raise TrackerRefuses(
                f"the experiment {name} was deleted in MLflow",
                "Restore it there, or name another one: mlflow+http://...?experiment=NAME",
            )
        return str(found.experiment_id)


def _metrics(told: Told) -> list[Any]:
    from mlflow.entities import Metric

    return [Metric(_name(p.name), p.value, int(1000 * p.time), p.step) for p in told.points]


def _name(text: str) -> str:
    return STRANGE.sub("_", text)[:250]


def _portions(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
