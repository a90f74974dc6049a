"""Whether the replicas of a plan had better sum rounded gradients.

What rounding does to learning is not weighed.
"""

from dataclasses import replace

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.catalog import AUTO, CODECS, codec
from backend.planning.codec_of_sums import ROUNDED
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.rounded_sums import RoundedSums
from backend.planning.work import SearchWork
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.run_ahead import NEAR
from backend.prediction.simulations import Simulations
from backend.profiles.state_precision import HALF, state_precision_named
from backend.units import bytes_text


def with_sums(question: Question, found: Prediction, work: SearchWork) -> Prediction:
    """The plan that was `found`, with rounded sums where the question leaves that open, the profile
    tells how fast they are coded, and the simulation is faster by a share of `NEAR`."""
    plan = found.plan
    is_open = question.codec_of_sums == AUTO and question.like is None
    short = state_precision_named(question.profile.state_precision).weight <= HALF
    if not is_open or short or max(plan.partition.replicas) == 1 or plan.shard_state:
        return found
    profile, simulations, best = question.at(plan.microbatch), Simulations(question, work), found
    for name, member in ROUNDED.items():
        if not CODECS[name].is_close or profile.coding_speed(name, Flow.GRADIENT) is None:
            continue
        try:
            coded = simulations.predicted(replace(plan, codec_of_sums=member))
        except PlanDoesNotFit:
            continue
        if coded.samples_per_second >= (1 + NEAR) * best.samples_per_second:
            best = coded
    return best


def sums_reason(plan: Plan, durations: PlanDurations) -> str:
    """What the codec of a plan's sums sends, in a sentence; "" where there is none."""
    chosen = plan.codec_of_sums
    if chosen is None:
        return ""
    groups = [(n, s.replicas) for n, s in enumerate(plan.partition.stages) if s.replicas > 1]
    sent = bytes_text(sum(durations.reduced_bytes(*group) for group in groups))
    plain = bytes_text(sum(durations.plain.reduced_bytes(*group) for group in groups))
    learning = "what it does to learning is not predicted."
    of_each = f"{sent} of a replica of each stage for an update instead of {plain}."
    if isinstance(chosen, RoundedSums):
        known = durations.sums.speed is not None
        doubt = "" if known else " The seconds of rounding are not in it: profile the model again."
        title = codec(chosen.numbers).title
        return f"Replicas sum gradients as {title}: {of_each}{doubt} {learning.capitalize()}"
    return (
        f"Replicas send the largest gradients alone ({chosen.words}): about {of_each} When "
        "thresholds are made, as many are sent; until the next ones it may be more or fewer, which "
        f"the run counts. The seconds of choosing them are not counted, and {learning}"
    )
