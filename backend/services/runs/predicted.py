"""The predicted timeline of a run's segment, encoded as the measured one is."""

import numpy as np

from backend.pipeline.columns import encode
from backend.prediction.predict import predicted_program
from backend.profiles.what_if import kept_in
from backend.runs.history.records import SpanBatch
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.services.runs.stores import Stores


def predicted_batches(
    stores: Stores, spec: RunSpec, segment: int, num_microbatches: int
) -> list[SpanBatch]:
    """One batch per rank, simulated from the stored plan's profile and cluster; none where the
    run has no stored plan. Raises `InvalidInput` on too few microbatches."""
    if not isinstance(spec, TrainSpec) or spec.plan_id is None:
        return []
    stored = stores.plans.get(spec.plan_id)
    profile = kept_in(stores.profiles.get(stored.profile_id).profile, spec.state_precision)
    _, timeline = predicted_program(profile, stored.cluster, spec.plan, num_microbatches)
    parts = [timeline.at(timeline.rank == rank) for rank in np.unique(timeline.rank).tolist()]
    return [
        SpanBatch("predicted", int(part.rank[0]), segment, encode(part), len(part))
        for part in parts
    ]
