"""What a replica holds of the layers that its stage splits by channels, as runs keep them."""

from collections.abc import Sequence
from dataclasses import replace

from backend.pipeline.memory import Holding
from backend.planning.channels.types import LayerType
from backend.planning.plan import Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile


def as_held(profile: Profile, plan: Plan, replica: int | None = None) -> Profile:
    """`profile` with the bytes that the replica of this number has of each layer that `plan`
    splits; None: of each stage the replica with the largest part. A layer of a stage that cannot be
    split so is copied.

    Weights, and by them gradients and the optimizer's state, are its part of the layer's. A bias
    that all replicas of type II copy is counted by its part too: profiles do not tell it apart.
    """
    if not plan.splits:
        return profile
    layers, splits = list(profile.layers), {split.layer: split for split in plan.splits}
    order = plan.partition.order or range(len(layers))
    for stage in plan.partition.stages:
        for number in order[stage.first : stage.stop]:
            split = splits.get(layers[number].name)
            parts = (split.parts or (1,) * stage.replicas) if split else ()
            if split is None or len(parts) != stage.replicas:
                continue
            own = max(parts) if replica is None else parts[replica % stage.replicas]
            read = profile.graph.read_bytes[number]
            part = own / sum(parts)
            layers[number] = _held(layers[number], split.kind, part, stage.replicas, read)
    return profile.with_layers(layers)


def _held(layer: Layer, kind: LayerType, part: float, replicas: int, read: int) -> Layer:
    """A replica's part of a layer that reads so many bytes of a microbatch. Its microbatches are
    computed together with one of each other replica.

    kept  own columns of what all read (II), or all columns (III), in place of what it reads itself;
          of an embedding, which reads numbers, those of all
    work  twice all replicas' rows of what they gather or add up, or what is passed on as columns:
          what is given and what is taken; what goes out or comes back of its own; gradients of its
          part of the weights
    """
    saved, work, looks_up = layer.saved_bytes, layer.work_bytes, layer.kind.startswith("Embedding")
    columns = round(replicas * read * (part if kind is LayerType.INPUTS else 1.0))
    if looks_up:
        kept = replicas * (saved or 0)
    elif saved is None:
        kept = layer.output_bytes + columns
    else:
        kept = (saved - read if saved >= read else saved) + columns
    if work is not None:
        made, read = layer.output_bytes, 0 if looks_up else read
        gathered, passed = (made, read) if kind is LayerType.INPUTS else (read, made)
        gradients = min(work, layer.parameter_bytes) * part
        work = round(gradients + made + 2 * max(replicas * gathered, passed))
    weights = round(layer.parameter_bytes * part)
    return replace(layer, parameter_bytes=weights, saved_bytes=kept, work_bytes=work)


def before_slicing(profile: Profile, stages: Sequence[Stage], held: Holding) -> Holding:
    """What a replica that holds so much while it trains holds more at its start: it makes the
    first values of whole layers, and keeps its slices of them. `profile` has whole layers, in the
    order of `stages`."""
    layers = [layer for stage in stages for layer in profile.layers[stage.first : stage.stop]]
    whole = sum(layer.parameter_bytes for layer in layers)
    return Holding(work=max(0.0, whole + held.constants + held.process - held.total))
