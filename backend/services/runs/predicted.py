"""What was predicted of runs: their rates, and the timeline of a segment, encoded as the measured
one is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from backend.comparison.other_links import other_links
from backend.comparison.shared_cores import (
    Expectation,
    at_share,
    short_of_cores,
    taken_by_others,
    takes_turns,
)
from backend.errors import InvalidInput
from backend.pipeline.columns import encode
from backend.planning.local_heads import headed
from backend.planning.plan import Plan
from backend.prediction.predict import predicted_program
from backend.profiles.profile import Profile
from backend.profiles.what_if import kept_in
from backend.runs.history.records import SpanBatch
from backend.runs.plans import StoredPlan
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run
from backend.services.runs.stores import Stores


def predicted_batches(
    stores: Stores, spec: RunSpec, segment: int, num_microbatches: int
) -> list[SpanBatch]:
    """One batch per rank, simulated from the stored plan's profile and cluster; none where the
    run has no stored plan. Raises `InvalidInput` on too few microbatches."""
    if not isinstance(spec, TrainSpec) or spec.plan_id is None:
        return []
    stored = stores.plans.get(spec.plan_id)
    profile = profile_of(stores, stored, spec, spec.plan)
    _, timeline = predicted_program(profile, stored.cluster, spec.plan, num_microbatches)
    parts = [timeline.at(timeline.rank == rank) for rank in np.unique(timeline.rank).tolist()]
    return [
        SpanBatch("predicted", int(part.rank[0]), segment, encode(part), len(part))
        for part in parts
    ]


def expected(stores: Stores, run: Run) -> Expectation:
    """What was predicted of a training, and what its cores make of it. A run that goes on by
    a fallback is expected to do what the fallback does."""
    spec = run.spec
    if not isinstance(spec, TrainSpec):
        return Expectation()
    if spec.plan_id is None:
        return Expectation(cores=taken_by_others(run.summary.cores, in_turns=False))
    stored = stores.plans.get(spec.plan_id)
    plan, cluster = plan_of(stores, run.id, spec), stored.cluster
    links = other_links(replace(spec, plan=plan), cluster)
    profile = profile_of(stores, stored, spec, plan)
    if spec.emulate:
        cores = short_of_cores(run.summary.cores)
        return Expectation(stored.prediction, cores, None, stored.profile_id)
    try:
        in_turns = takes_turns(profile, cluster, plan)
        cores = taken_by_others(run.summary.cores, in_turns=in_turns)
        slower = at_share(profile, cluster, plan, cores) if cores and cores.is_said else None
    except InvalidInput:  # the plan is for other machines than it was kept for
        cores, slower = taken_by_others(run.summary.cores, in_turns=False), None
    taken = profile.cores_taken
    return Expectation(stored.prediction, cores, slower, stored.profile_id, taken, links)


def profile_of(stores: Stores, stored: StoredPlan, spec: TrainSpec, plan: Plan) -> Profile:
    """The profile of a kept plan as a run by `plan` has it: in the precision of its state, and with
    its local heads."""
    kept = kept_in(stores.profiles.get(stored.profile_id).profile, spec.state_precision)
    return headed(kept, plan, spec.local_head)


def plan_of(stores: Stores, run_id: int, spec: TrainSpec) -> Plan:
    """What its newest attempt goes by: its own plan, or a fallback."""
    attempts = stores.runs.attempts(run_id)
    return (attempts[-1].plan if attempts else None) or spec.plan


def predicted_rates(runs: Sequence[Run], stores: Stores) -> Mapping[int, float]:
    """Samples/s of each run that has a stored plan; of one that goes on by a fallback, that of the
    fallback."""
    plans = {run.id: run.spec.plan_id for run in runs if isinstance(run.spec, TrainSpec)}
    known = stores.plans.rates({plan for plan in plans.values() if plan is not None})
    factors = {run.id: _factor(run, stores) for run in runs if run.fallbacks and run.attempt > 1}
    return {
        run_id: known[plan] * factors.get(run_id, 1.0)
        for run_id, plan in plans.items()
        if plan is not None and plan in known
    }


def _factor(run: Run, stores: Stores) -> float:
    return stores.runs.attempts(run.id)[-1].factor or 1.0
