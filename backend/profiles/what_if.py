"""The same model under other conditions: a profile that was not measured, from one that was."""

from dataclasses import replace

from backend.errors import InvalidInput
from backend.profiles.profile import Profile


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
    weights = {(tie.owner, tie.bytes) for tie in profile.graph.tied_weights}
    crossings = tuple(
        tensor
        if (tensor.producer, tensor.bytes) in weights
        else replace(tensor, bytes=round(tensor.bytes * share))
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
