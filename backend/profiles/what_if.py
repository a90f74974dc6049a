"""The same model under other conditions: a profile that was not measured, from one that was."""

from dataclasses import replace

from backend.errors import InvalidInput
from backend.profiles.crossing import Crossing
from backend.profiles.profile import Profile
from backend.profiles.state_precision import StatePrecision, state_precision_named


def at_microbatch(profile: Profile, microbatch: int) -> Profile:
    """`profile` at another microbatch size: compute and activations in proportion, weights and
    updates as they are.

    An assumption: small microbatches use a device worse than in proportion, which only a
    measurement tells. Raises `InvalidInput` below 1.
    """
    if microbatch < 1:
        raise InvalidInput(f"microbatch {microbatch} is not 1 or more")
    if microbatch == profile.microbatch:
        return profile
    share = microbatch / profile.microbatch
    note = (
        f"times and activations in proportion from microbatch {profile.microbatch} to {microbatch}"
    )
    layers = tuple(layer.scaled(compute=share, samples=share) for layer in profile.layers)
    crossings = tuple(
        tensor
        if _is_weight(profile, tensor)
        else replace(
            tensor,
            bytes=round(tensor.bytes * share),
            rows=_rows(tensor, profile.microbatch, microbatch),
        )
        for tensor in profile.graph.crossings
    )
    return replace(
        profile,
        graph=replace(profile.graph, layers=layers, crossings=crossings),
        microbatch=microbatch,
        whole_forward=profile.whole_forward * share,
        whole_backward=profile.whole_backward * share,
        notes=(*profile.notes, note),
    )


def kept_in(profile: Profile, precision: StatePrecision) -> Profile:
    """`profile` of a training that keeps its state in `precision`: with other bytes of parameters,
    frozen ones too, and of the tied weights that cross cuts.

    Seconds and activations stay as they are: those are a matter of the compute. What was measured
    counts as float32, and all of it as kept in `precision`: biases and scales of norms, which stay
    in float32, are few. Raises `InvalidInput` for an unknown precision.
    """
    share = state_precision_named(precision).share
    share /= state_precision_named(profile.state_precision).share
    kept = replace(profile, state_precision=precision)
    if share == 1:
        return kept
    layers = tuple(
        replace(
            layer,
            parameter_bytes=round(layer.parameter_bytes * share),
            frozen_bytes=round(layer.frozen_bytes * share),
            local_heads=tuple(
                replace(head, parameter_bytes=round(head.parameter_bytes * share))
                for head in layer.local_heads
            ),
        )
        for layer in profile.layers
    )
    crossings = tuple(
        replace(
            tensor,
            bytes=round(tensor.bytes * share),
            number_bytes=round(tensor.number_bytes * share),
        )
        if _is_weight(profile, tensor)
        else tensor
        for tensor in profile.graph.crossings
    )
    ties = tuple(replace(tie, bytes=round(tie.bytes * share)) for tie in profile.graph.tied_weights)
    graph = replace(profile.graph, layers=layers, crossings=crossings, tied_weights=ties)
    return replace(kept, graph=graph)


def _rows(tensor: Crossing, before: int, now: int) -> int | None:
    """They grow with the samples where they are samples, or the same number of each."""
    if tensor.rows is None or tensor.rows % before:
        return tensor.rows
    return tensor.rows // before * now


def _is_weight(profile: Profile, tensor: Crossing) -> bool:
    """Whether what crosses cuts is a tied weight."""
    known = ((tie.owner, tie.bytes) for tie in profile.graph.tied_weights)
    return (tensor.producer, tensor.bytes) in known
