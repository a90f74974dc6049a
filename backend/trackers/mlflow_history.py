"""A run's history from MLflow."""

import re
from typing import Any

from backend.errors import InvalidInput, NotFound
from backend.runs.events import LAST_SECOND, MAX_NAME
from backend.runs.history.brought import TheirRun, stepped
from backend.runs.history.records import MetricPoint
from backend.runs.states import RunState
from backend.trackers.mlflow_server import MlflowServer, reading
from backend.trackers.tracker import RunGoneThere

RUN = re.compile(r"(?:^|/runs/)([0-9a-zA-Z]{8,64})(?:$|[/?#])")
MOST_POINTS = 1_000_000
LAST_STEP = 2**31 - 1
STATES = {
    "FINISHED": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "KILLED": RunState.CANCELLED,
}


def history(server: MlflowServer, run: str) -> TheirRun:
    """`run` is MLflow's number of it, or the address of its page. Raises `InvalidInput`,
    `NotFound`, `TrackerAway`, and `TrackerRefuses`."""
    found = RUN.search(run.strip())
    if found is None:
        raise InvalidInput(
            f"{run[:100]!r} is not a run of MLflow",
            "Give its id there, or the address of its page.",
        )
    client, number = server.client(), found[1]
    try:
        with reading(number):
            stored = client.get_run(number)
            if stored.info.lifecycle_stage == "deleted":
                raise RunGoneThere(f"MLflow's run {number} is deleted")
            return _read(client, server, stored)
    except RunGoneThere:
        raise NotFound(f"MLflow has no run {number}, or it is deleted there") from None


def _read(client: Any, server: MlflowServer, run: Any) -> TheirRun:
    info, tags = run.info, run.data.tags
    if info.status not in STATES:
        raise InvalidInput(f"MLflow's run {info.run_id} goes on", "Import it when it has ended.")
    began = (info.start_time or 0) / 1000
    return TheirRun(
        tracker="MLflow",
        remote=info.run_id,
        name=info.run_name or info.run_id,
        state=STATES[info.status],
        started=began,
        finished=info.end_time / 1000 if info.end_time else began,
        url=server.page(info.experiment_id, info.run_id),
        note=tags.get("mlflow.note.content", ""),
        parameters=dict(run.data.params),
        tags=tuple(
            f"{name}={value}" if value else name
            for name, value in sorted(tags.items())
            if not name.startswith(("mlflow.", "stageflow."))
        ),
        metrics=_metrics(client, run),
    )


def _metrics(client: Any, run: Any) -> dict[str, list[MetricPoint]]:
    found: dict[str, list[MetricPoint]] = {}
    room = MOST_POINTS
    for name in sorted(run.data.metrics):
        points = client.get_metric_history(run.info.run_id, name)
        room -= len(points)
        if room < 0:
            raise InvalidInput(f"the run has more than {MOST_POINTS:,} points", "It is too long.")
        found[name[:MAX_NAME]] = stepped([_point(point) for point in points])
    return found


def _point(metric: Any) -> MetricPoint:
    step = min(max(int(metric.step), 0), LAST_STEP)
    return MetricPoint(step, 0, float(metric.value), _moment(metric.timestamp))


def _moment(milliseconds: float) -> float:
    return min(max(milliseconds / 1000, 0.0), LAST_SECOND)
