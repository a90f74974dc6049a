"""One run as one document: what `show --json`, `export` and the page's download give."""

from typing import Any

from backend.bootstrap import Backend
from backend.codec import to_plain
from backend.comparison.last_run import LastRun
from backend.comparison.shared_cores import Expectation
from backend.comparison.stragglers import Paces
from backend.pipeline.notation import format_action
from backend.pipeline.timeline import Timeline
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

METRICS = ("loss", ACCURACY, HELD_OUT_LOSS, "throughput")
"""Those that every training has, if only without a point."""


def run_document(backend: Backend, run: Run, *, with_logs: bool = False) -> dict[str, Any]:
    """The run with its plan, metrics and both timelines as plain values.

    Timelines are columns ({"rank": [...], "start": [...]}) in seconds since the segment
    began, of the last measured segment; `None` where there is none (yet).
    """
    document: dict[str, Any] = {"format": "stageflow-run", "version": 1}
    document |= to_plain(Run, run)
    document["kind"] = run.kind
    document["plan"] = _plan(backend, run)
    document["expected"] = to_plain(Expectation, backend.runs.expected(run))
    paces = backend.runs.paces(run)
    document["paces"] = None if paces is None else to_plain(Paces, paces)
    document["watched_in_vain"] = backend.runs.watched_in_vain(run)
    last = backend.runs.beside_last(run)
    document["beside_last"] = None if last is None else to_plain(LastRun, last)
    names = dict.fromkeys([*METRICS, *backend.runs.metrics.names(run.id)])
    document["metrics"] = {name: _points(backend, run.id, name) for name in names}
    document["timelines"] = {
        kind: columns(backend.runs.spans.timeline(run.id, kind))
        for kind in ("measured", "predicted")
    }
    document["artifacts"] = [
        {"name": a.name, "size": a.size, "sha256": a.sha256}
        for a in backend.runs.artifacts.list(run.id)
    ]
    if with_logs:
        document["log"] = [
            {"time": line.time, "rank": line.rank, "text": line.text}
            for line in backend.runs.logs.every(run.id)
        ]
    return document


def _plan(backend: Backend, run: Run) -> dict[str, Any] | None:
    if not isinstance(run.spec, TrainSpec):
        return None
    plan: dict[str, Any] = to_plain(type(run.spec.plan), run.spec.plan)
    plan["label"] = run.spec.plan.label
    if run.spec.plan_id is not None:
        stored = backend.plans.get(run.spec.plan_id)
        prediction = to_plain(type(stored.prediction), stored.prediction)
        plan["prediction"] = {key: prediction[key] for key in prediction if key != "plan"}
        profile = backend.profiles.get(stored.profile_id).profile
        layers = profile.in_order(run.spec.plan.partition.order).layers
        for stage, plain in zip(
            run.spec.plan.partition.stages, plan["partition"]["stages"], strict=True
        ):
            plain["layers"] = [layer.name for layer in layers[stage.first : stage.stop]]
    return plan


def _points(backend: Backend, run_id: int, name: str) -> list[dict[str, Any]]:
    return [
        {"step": p.step, "epoch": p.epoch, "value": p.value}
        for p in backend.runs.metrics.list(run_id, name)
    ]


def columns(timeline: Timeline | None) -> dict[str, list[Any]] | None:
    """Spans by columns, in seconds since the segment began."""
    if timeline is None:
        return None
    return {
        "rank": timeline.rank.tolist(),
        "index": timeline.index.tolist(),
        "action": [format_action(action) for action in timeline.rows.actions()],
        "start": timeline.start.tolist(),
        "end": timeline.end.tolist(),
    }
