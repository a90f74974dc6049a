"""From what the ranks measured to the numbers beside the prediction's."""

from dataclasses import replace

import numpy as np

from backend.pipeline.bubbles import bubble
from backend.pipeline.kinds import Kind
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.prediction.shapes import microbatch_unit, training_shape
from backend.prediction.steady import seconds_per_microbatch
from backend.runs.events import ACCURACY
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import RunSummary
from workers.supervisor.reporting.results import Results


def summarise(spec: RunSpec, results: Results, started: float | None = None) -> RunSummary:
    """What is known at the end; the times are those of the last segment, where every rank
    has told its spans. `started` is when the run began, in Unix seconds. Raises `InvalidInput`
    on spans that no program has."""
    reached = results.reached
    summary = RunSummary(
        accuracy=results.newest.get(ACCURACY),
        metrics={name: value for name, value in results.newest.items() if name != ACCURACY},
        loss=results.loss.mean,
        epochs=results.epochs,
        profile_id=results.profile_id,
        seconds_to_target=reached - started if reached and started else None,
        clocks=tuple(results.clocks[rank] for rank in sorted(results.clocks)),
        cores=tuple(results.cores[rank] for rank in sorted(results.cores)),
    )
    if isinstance(spec, TrainSpec) and len(results.spans) == len(spec.plan.devices):
        return _timed(summary, spec.plan, results)
    return summary


def _timed(summary: RunSummary, plan: Plan, results: Results) -> RunSummary:
    """By the same rules as the prediction's: see `backend.prediction.predict`."""
    shape = training_shape(plan, num_microbatches(results))
    measured = timeline(results)
    seconds = plan.batch * seconds_per_microbatch(measured, shape, microbatch_unit(plan))
    return replace(
        summary,
        seconds_per_minibatch=seconds,
        samples_per_second=plan.batch * plan.microbatch / seconds if seconds else None,
        bubble=bubble(measured),
    )


def timeline(results: Results) -> Timeline:
    """The last segment, ordered by rank."""
    return Timeline.joined([results.spans[rank] for rank in sorted(results.spans)])


def num_microbatches(results: Results) -> int:
    """Microbatches of the last segment."""
    rows = timeline(results).rows
    first = (rows.kind == Kind.FORWARD) & (rows.stage == 0)
    return len(np.unique(rows.microbatch[first]))
