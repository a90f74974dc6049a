"""Why a plan is as it is, in sentences: the first says what holds it back."""

from collections.abc import Iterator
from dataclasses import replace

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.local_heads import heads_reason
from backend.planning.memory import memory_parts, replica_parts
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.room import check_memory, parts_text
from backend.prediction.across_sites import sites_reason
from backend.prediction.bottleneck import explain, waits
from backend.prediction.channel_splits import split_reason
from backend.prediction.chosen_codecs import codec_reason
from backend.prediction.chosen_sums import sums_reason
from backend.prediction.durations import PlanDurations
from backend.prediction.energy import energy, energy_reason
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.sensitivity import sensitivity
from backend.prediction.shapes import steady_shape
from backend.prediction.split_profile import as_split
from backend.profiles.profile import ONE_LAYER
from backend.units import bytes_text, percent_text


def reasons(question: Question, prediction: Prediction) -> Iterator[str]:
    """Why there is no cut where the model is one layer, what the bottleneck is, what is held, what
    memory made of the plan, what a sample takes of energy, and, where it does not interleave, what
    moving its layers would cost."""
    plan, cluster = prediction.plan, question.cluster
    profile, shape = question.profile_of(plan), steady_shape(plan)
    durations = PlanDurations.of(as_split(profile, cluster, plan), cluster, plan)
    if len(profile.layers) == 1 and cluster.num_devices > 1:
        yield next((note for note in profile.notes if note.startswith(ONE_LAYER)), f"{ONE_LAYER}.")
    yield explain(durations, plan, shape)
    each = prediction.seconds_per_minibatch / plan.batch
    if waiting := waits(durations, plan, shape, each):
        yield waiting
    if said := sites_reason(plan, durations):
        yield said
    if said := sums_reason(plan, durations):
        yield said
    if idle := cluster.num_devices - len(set(plan.devices)):
        yield f"{idle} of {cluster.num_devices} devices have no work."
    yield _most_held(question, plan)
    if coded := codec_reason(question, plan):
        yield coded
    if split := split_reason(question, plan):
        yield split
    yield from _ran_ahead(question, plan)
    if warning := schedule(plan.schedule).warning:
        yield warning
    if heads := heads_reason(profile, plan):
        yield heads
    if plan.recompute and (fault := _excess(question, replace(plan, recompute=False))):
        yield f"Activations are computed again before the backward, since without that {fault}."
    if plan.shard_state and (fault := _excess(question, replace(plan, shard_state=False))):
        yield f"The optimizer's state is sharded over the replicas, since without that {fault}."
    size = question.profile.microbatch  # an update of each: they are not split
    stashing = replace(plan.under(PIPEDREAM.name, 1), microbatch=size, num_pipelines=1, sites=None)
    if (
        not question.schedule
        and plan.partition.chunks == 1
        and (fault := _excess(question, stashing))
    ):
        split = f" in microbatches of {size} samples" if size != plan.microbatch else ""
        yield f"Schedule {plan.schedule} is used, since under {PIPEDREAM.name}{split} {fault}."
    if joules := energy_reason(prediction, energy(prediction, cluster, profile)):
        yield joules
    if plan.partition.chunks == 1:
        simulated = question.predict if plan.planner == "best" else None
        yield from sensitivity(profile, cluster, plan, question.optimizer, simulated)


def _most_held(question: Question, plan: Plan) -> str:
    """Whose devices hold most, and of what."""
    profile = question.at(plan.microbatch)
    held = memory_parts(profile, plan, steady_shape(plan), question.optimizer)
    stage = max(range(len(held)), key=lambda each: held[each].total)
    most, cut = held[stage], plan.partition
    together = cut.held_by(cut.pipeline_rank_of(stage))
    who = " and ".join(map(str, together))
    holds = f"Stages {who} hold" if len(together) > 1 else f"Stage {who} holds"
    return f"{holds} most, {bytes_text(most.total)}: {parts_text(most)}."


def _ran_ahead(question: Question, plan: Plan) -> Iterator[str]:
    """What the further microbatches in flight buy and cost, beside the same plan without them."""
    if not plan.run_ahead:
        return
    mine, plain = question.predict(plan), question.predict(replace(plan, run_ahead=0))
    gain = mine.samples_per_second / (plain.samples_per_second or 1.0) - 1
    more = max(mine.memory_bytes) - max(plain.memory_bytes)
    older = (
        f"{max(mine.versions)} instead of {max(plain.versions)} weight versions and "
        f"{mine.staleness} instead of {plain.staleness} updates of staleness"
    )
    yield (
        f"It runs ahead by {plan.run_ahead} per hop: {percent_text(gain)} more samples/s than "
        f"without, for {bytes_text(more)} more memory at the peak"
        + (f", {older}." if mine.staleness != plain.staleness else "; weights are no older.")
    )


def _excess(question: Question, plan: Plan) -> PlanDoesNotFit | None:
    """Why `plan` does not fit the memory; None where it does."""
    profile = question.at(plan.microbatch)
    held = replica_parts(profile, plan, steady_shape(plan), question.optimizer)
    try:
        check_memory(held, question.cluster, plan.partition)
    except PlanDoesNotFit as fault:
        return fault
    return None
