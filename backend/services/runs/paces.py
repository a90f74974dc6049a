"""How fast the ranks of a run computed, from its timelines and its plan."""

from backend.comparison.shared_cores import taken_by_others
from backend.comparison.stragglers import ENOUGH, MeasuredSegment, Paces, paces
from backend.errors import StageflowError
from backend.prediction.predict import predicted_durations
from backend.runs.history.records import TimelineKind
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.services.runs.predicted import plan_of, profile_of
from backend.services.runs.stores import Stores

BESIDE: tuple[TimelineKind, ...] = ("loading", "saving")


def paces_of(stores: Stores, run: Run) -> Paces | None:
    """That of a training by a kept plan; None for other runs, for emulated ones, which take the
    seconds of their plan, and while too little of it was measured."""
    spec = run.spec
    if not isinstance(spec, TrainSpec) or spec.plan_id is None or spec.emulate:
        return None
    newest = stores.spans.segments(run.id)[-ENOUGH:]
    if not newest:
        return None
    plan = plan_of(stores, run.id, spec)
    try:
        stored = stores.plans.get(spec.plan_id)
        profile = profile_of(stores, stored, spec, plan)
        durations = predicted_durations(profile, stored.cluster, plan)
    except StageflowError:  # deleted, or the plan is for other machines than it was kept for
        return None
    cores = taken_by_others(run.summary.cores, in_turns=False)
    found = (_segment(stores, run.id, number) for number in reversed(newest))
    return paces(filter(None, found), durations, plan, cores.by_rank if cores else {})


def _segment(stores: Stores, run_id: int, number: int) -> MeasuredSegment | None:
    measured = stores.spans.timeline(run_id, "measured", number)
    if measured is None:
        return None
    beside = (stores.spans.timeline(run_id, kind, number) for kind in BESIDE)
    return MeasuredSegment(measured, tuple(parts for parts in beside if parts is not None))
