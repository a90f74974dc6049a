"""How far a plan should run ahead: until no link is waited for, and no further.

Every further microbatch in flight keeps activations, and where weights are stashed a version and an
update of staleness.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from backend.errors import InvalidInput
from backend.pipeline.actions import Flow, Message
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.warm_up import warm_up_of
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.work import SearchWork
from backend.prediction.bottleneck import busiest
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape
from backend.prediction.simulations import Simulations

MOST_TRIED = 8
"""Further microbatches per hop beyond which a search does not look."""
NEAR = 0.01
"""A smaller share of its seconds is not worth a further microbatch."""


def ahead(question: Question, found: Prediction, work: SearchWork) -> Prediction:
    """The plan that was `found`, running as far ahead as a simulation finds faster by a share of
    `NEAR`; as it is where the question says how far. What is asked of `work` is counted."""
    plan = found.plan
    if question.like is not None or question.run_ahead is not None or plan.run_ahead:
        return found
    profile = question.at(plan.microbatch)
    durations = PlanDurations.of(profile, question.cluster, plan)
    simulations, best = Simulations(question, work), found
    for run_ahead in range(enough(durations, plan), 0, -1):
        try:
            further = simulations.predicted(replace(plan, run_ahead=run_ahead))
        except (InvalidInput, PlanDoesNotFit):
            continue
        gain = further.samples_per_second / (best.samples_per_second or 1.0) - 1
        if gain < (NEAR if best is found else -NEAR / 10):
            break
        best = further
    return best


def enough(durations: PlanDurations, plan: Plan) -> int:
    """The fewest further microbatches per hop with which the busiest stage or cut holds the
    pipeline back and no way there and back does (`loop_seconds`), at most `MOST_TRIED`. Equal
    stages need ceil(2 C / (F + B)). 0 where the schedule takes none."""
    cut = plan.partition
    if not schedule(plan.schedule).runs_ahead or len(cut.stages) == 1 or any(durations.one_way):
        return 0
    shape = steady_shape(plan)
    limit = (1 + NEAR) * busiest(durations, plan, shape)
    again = durations.forward if plan.recompute else (0.0,) * len(cut.stages)
    compute = tuple(map(sum, zip(durations.forward, durations.backward, again, strict=True)))
    hops = [
        durations.transfer(
            Message(Flow.ACTIVATION, here, 0), shape.rank_of(here, 0), shape.rank_of(there, 0)
        )
        for here, there in pairwise(range(len(cut.stages)))
    ]
    tried = range(MOST_TRIED)
    fine = (a for a in tried if loop_seconds(compute, hops, cut.replicas, a) <= limit)
    return next(fine, MOST_TRIED)


def loop_seconds(
    compute: Sequence[float], hops: Sequence[float], replicas: Sequence[int], run_ahead: int
) -> float:
    """Seconds per microbatch below which a pipeline that never drains does not come: of any stages
    s <= t the way of a microbatch from s to t and back, while w_s - w_t + 1 are under way there.

        max over s <= t of (sum of F + B of s..t + 2 sum of C of s..t-1) / (w_s - w_t + 1)

    `compute` is F + B of each stage and `hops` C of each cut; w_s is the warm-up of stage s. The
    formula, and that it is for replicas with those of all of a stage added up, are ours; straight
    pipelines are held against the simulator.
    """
    counts = np.array(replicas)
    behind = np.cumsum(counts[::-1])[::-1]
    rounds = -(-behind // counts)
    warm_up = counts * np.array([warm_up_of(each, run_ahead) for each in rounds.tolist()])
    spent = np.concatenate(([0.0], np.cumsum(compute)))
    sent = np.concatenate(([0.0], np.cumsum(hops)))
    way = spent[None, 1:] - spent[:-1, None] + 2 * (sent[None, :] - sent[:, None])
    under_way = warm_up[:, None] - warm_up[None, :] + counts[None, :]
    loops = np.triu(way / np.maximum(under_way, 1))
    return float(loops.max())
