"""A profile as JSON with a format name and a version, and back."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.profiles.profile import Layer, Profile

FORMAT: Literal["stageflow-profile"] = "stageflow-profile"
VERSION: Literal[1] = 1
OF_WEIGHTS = ("update", "adding", "renewal")
ADVICE = "Export the profile again, or profile the model again."


@dataclass(frozen=True)
class _Document:
    format: Literal["stageflow-profile"]
    version: Literal[1]
    profile: Profile


def write_profile(profile: Profile) -> bytes:
    """`profile` as JSON: {"format": "stageflow-profile", "version": 1, "profile": {...}}."""
    return to_json(_Document, _Document(FORMAT, VERSION, profile))


def read_profile(data: bytes | str) -> Profile:
    """The profile that `write_profile` wrote; raises `InvalidInput` naming the faulty field."""
    try:
        document: _Document = from_json(_Document, data)
    except InvalidInput as fault:
        raise InvalidInput(f"not a profile: {fault}", ADVICE) from None
    check_profile(document.profile)
    return document.profile


def check_profile(profile: Profile) -> None:
    """Raise `InvalidInput` where a planner could not use the profile."""
    if not profile.layers:
        raise InvalidInput("the profile has no layers", ADVICE)
    if profile.microbatch < 1:
        raise InvalidInput(f"microbatch: {profile.microbatch} is not 1 or more", ADVICE)
    name, count = Counter(layer.name for layer in profile.layers).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"layer {name!r} is there {count} times", ADVICE)
    for layer in profile.layers:
        _check_layer(layer)


def _check_layer(layer: Layer) -> None:
    for field in ("forward", "backward", "output_bytes", "parameter_bytes", *OF_WEIGHTS):
        value = getattr(layer, field)
        if not math.isfinite(value) or value < 0:
            raise InvalidInput(f"layer {layer.name!r}: {field} is {value:g}, not 0 or more", ADVICE)
