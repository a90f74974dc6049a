"""What every trainer has to be told of a plan, and what none of them can be told."""

from collections.abc import Iterator
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.torch_csv import write_csv
from backend.pipeline.kept_order import KeptOrder
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.plan import Plan
from backend.prediction.trainers.names import NamesElsewhere, names_elsewhere
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class Handover:
    """A plan as equal straight pipelines beside each other.

    model         the profile's name
    stages        the layers of each stage, input first
    size, chunks  pipeline ranks, and stages on each, that lie by `placement`
    replicas      pipelines beside each other
    microbatches  of one pipeline per update, of `samples` samples each
    schedule      of the catalog; `names` elsewhere
    skips         sentences: tensors with gradients that are read two stages later or more
    notes         sentences: what whoever trains has to see to
    """

    model: str
    stages: tuple[tuple[Layer, ...], ...]
    size: int
    chunks: int
    placement: Placement
    replicas: int
    microbatches: int
    samples: int
    schedule: str
    advance: int
    names: NamesElsewhere
    recompute: bool
    shard_state: bool
    skips: tuple[str, ...]
    notes: tuple[str, ...]
    kept_order: KeptOrder

    @property
    def shape(self) -> Shape:
        """One update of one pipeline."""
        count = self.microbatches
        return Shape(
            (1,) * self.size,
            count,
            count,
            chunks=self.chunks,
            advance=self.advance,
            placement=self.placement,
            kept_order=self.kept_order,
        )

    @property
    def csv(self) -> str:
        """The order of one pipeline, as torch reads it."""
        return write_csv(lower(schedule(self.schedule), self.shape))

    @property
    def heading(self) -> tuple[str, ...]:
        """What is handed on, in sentences, and the notes."""
        pipelines = f", {self.replicas} such pipelines beside each other" * (self.replicas > 1)
        return (
            f"{self.model}: {len(self.stages)} stages on {self.size} ranks{pipelines}.",
            f"Per update and pipeline: {self.microbatches} microbatches of {self.samples} samples.",
            f"Schedule: {self.schedule} ({schedule(self.schedule).title}).",
            *self.notes,
        )


def handover(profile: Profile, plan: Plan) -> Handover:
    """What `plan` is to another trainer. Raises `InvalidInput` with what cannot be said there."""
    cut, name = plan.partition, plan.schedule
    names = names_elsewhere(name)
    if cut.order and cut.order != tuple(sorted(cut.order)):
        raise InvalidInput(
            "the plan runs the layers in another order than the model's own, which only Stageflow "
            "does",
            "Plan by hand along the model's order: --cut, or the cuts on the Plan page.",
        )
    if len(cut.stages) == 1:
        raise InvalidInput(
            "the plan has one stage: there is no pipeline to hand on", "Use data parallelism there."
        )
    if cut.shares:
        raise InvalidInput(
            f"replicas take unequal shares ({cut.label}), and other trainers share evenly",
            "Plan by hand with equal shares: --cut.",
        )
    if len(set(cut.replicas)) > 1:
        raise InvalidInput(
            f"the stages have unequal numbers of replicas ({cut.label}), and other trainers copy "
            "whole pipelines",
            "Plan with equal numbers: planner straight or pipedream-2bw, or --cut.",
        )
    if plan.num_pipelines > 1:
        raise InvalidInput(
            f"{plan.num_pipelines} parallel pipelines have weights of their own and exchange them, "
            "which only Stageflow does",
            "Plan with one pipeline.",
        )
    replicas = cut.replicas[0]
    if plan.batch % replicas:
        raise InvalidInput(
            f"{plan.batch} microbatches are not shared evenly by {replicas} pipelines",
            f"Plan with a multiple of {replicas}.",
        )
    return Handover(
        profile.name,
        tuple(profile.layers[stage.first : stage.stop] for stage in cut.stages),
        cut.pipeline_size,
        cut.chunks,
        cut.placement,
        replicas,
        plan.batch // replicas,
        plan.microbatch,
        name,
        plan.advance,
        names,
        plan.recompute,
        plan.shard_state,
        tuple(_skips(profile, plan)),
        tuple(_notes(profile, plan)),
        plan.kept_order,
    )


def _skips(profile: Profile, plan: Plan) -> Iterator[str]:
    stage_of, layers = _stages(plan), profile.layers
    weights = {(tied.owner, tied.readers) for tied in profile.graph.tied_weights}
    for tensor in profile.graph.tensors:
        made, read = tensor.producer, max(tensor.readers)
        is_far = stage_of[read] > stage_of[made] + 1 and (made, tensor.readers) not in weights
        if is_far and tensor.has_gradient:
            yield (
                f"what {layers[made].name} makes on stage {stage_of[made]} is read by "
                f"{layers[read].name} on stage {stage_of[read]}"
            )


def _stages(plan: Plan) -> list[int]:
    """The stage of each layer."""
    stages = enumerate(plan.partition.stages)
    return [number for number, stage in stages for _ in range(stage.first, stage.stop)]


def _notes(profile: Profile, plan: Plan) -> Iterator[str]:
    replicas, ends = plan.partition.replicas[0], profile.graph.one_way
    if replicas > 1:
        yield (
            f"Gradients are averaged over the {replicas} pipelines before each update: data "
            f"parallelism of degree {replicas}."
        )
    if plan.recompute:
        yield "The plan counts on activations that are computed again: switch checkpointing on."
    if plan.shard_state:
        yield "The plan counts on an optimizer's state that is sharded over replicas (ZeRO-1)."
    quiet = [n for n, each in enumerate(plan.partition.stages) if ends[each.stop - 1]]
    if quiet:
        yield (
            f"Nothing up to stage {max(quiet)} is trained, and Stageflow sends no gradients there; "
            "other trainers may."
        )
    stage_of = _stages(plan)
    for tied in profile.graph.tied_weights:
        stages = sorted({stage_of[layer] for layer in (tied.owner, *tied.readers)})
        if len(stages) > 1:
            yield (
                f"{tied.weight} is read on stages {', '.join(map(str, stages))}: keep it equal "
                "there, and add up its gradients."
            )
