"""Whether two plans teach a model the same: from the same samples, by the same rule."""

from dataclasses import dataclass, replace

from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.codec_of_sums import CodecOfSums
from backend.planning.plan import Plan
from backend.planning.sites import Sites
from backend.prediction.shapes import microbatch_unit

FLUSHING = "flush"


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """What of a plan its weights depend on.

    rule           `FLUSHING` for every schedule that flushes: an update does not depend on
                   where or in which order its microbatches are computed; else the schedule's name
    num_pipelines  pipelines with weights of their own, which are averaged
    microbatch     samples that a layer sees at once, as batch norm's statistics do
    per_update     microbatches of an update, of each of the profile's layers
    run_ahead      where weights are the older the further it runs ahead
    codecs         those that messages are coded by, whichever cuts they cross
    cuts           layers from which on there is another loss, where each stage has its own
    sites          what pipelines exchange, wherever they are; None: elastic averaging
    codec_of_sums  of the gradients of replicas, however many there are
    """

    rule: str
    num_pipelines: int
    microbatch: int
    per_update: tuple[int, ...]
    run_ahead: int = 0
    codecs: frozenset[str] = frozenset()
    cuts: tuple[int, ...] = ()
    sites: Sites | None = None
    codec_of_sums: CodecOfSums | None = None


def alike(one: str, other: str) -> bool:
    """Whether schedules of these names update by the same rule."""
    return _rule(one) == _rule(other)


def goes_on_from(plan: Plan, before: Plan) -> bool:
    """Whether a training by `before` may go on by `plan`, as if nothing had happened: the same
    updates, of epochs that are whole rounds of both. Raises `InvalidInput` as `microbatch_unit`."""
    whole = microbatch_unit(before) % microbatch_unit(plan) == 0
    return whole and updates_of(plan) == updates_of(before)


def samples_per_update(plan: Plan) -> int:
    """The samples of one update: of the layer whose update takes most. A schedule with batches
    takes the batch (each of several pipelines its own); any other a microbatch of every replica of
    a stage."""
    return max(updates_of(plan).per_update) * plan.microbatch


def updates_of(plan: Plan) -> UpdateRule:
    """What the weights of a training by `plan` depend on."""
    member, partition = schedule_named(plan.schedule), plan.partition
    num_layers = partition.stages[-1].stop
    per_update = [plan.batch] * num_layers
    if not member.batched:  # a stage updates when each of its replicas has had a microbatch
        for stage in partition.stages:
            for place in range(stage.first, stage.stop):
                layer = partition.order[place] if partition.order else place
                per_update[layer] = stage.replicas
    return UpdateRule(
        _rule(plan.schedule),
        plan.num_pipelines,
        plan.microbatch,
        tuple(per_update),
        plan.run_ahead if member.grows_older else 0,
        frozenset(filter(None, plan.codecs)),
        tuple(stage.first for stage in partition.stages) if member.local else (),
        replace(plan.sites, devices=0) if plan.sites else None,
        plan.codec_of_sums,
    )


def _rule(name: str) -> str:
    return FLUSHING if schedule_named(name).flushes else name
