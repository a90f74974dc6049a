"""A profile as JSON with a format name and a version, and back."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from backend.codec import from_json, num_values, to_json
from backend.errors import InvalidInput
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile

FORMAT: Literal["stageflow-profile"] = "stageflow-profile"
VERSION: Literal[1] = 1
SECONDS = (
    *("forward", "backward", "backward_input", "backward_weight"),
    *("update", "adding", "out_of_place_update"),
)
BYTES = (
    *("output_bytes", "parameter_bytes", "saved_bytes", "buffer_bytes", "frozen_bytes"),
    *("work_bytes", "deferred_bytes"),
)
MOST = dict.fromkeys(SECONDS, 1e9) | dict.fromkeys(BYTES, 1e18) | {"flops": 1e30}
"""Of a layer: 32 years, an exabyte. What is larger is a slip, and no sum of these overflows."""
MOST_SAMPLES = 10**9
MOST_VALUES = 2_000_000
"""Of a profile: those of some ten thousand layers, in 200 MB."""
ADVICE = "Export the profile again, or profile the model again."


@dataclass(frozen=True)
class _ProfileDocument:
    format: Literal["stageflow-profile"]
    version: Literal[1]
    profile: Profile


def write_profile(profile: Profile) -> bytes:
    """`profile` as JSON: {"format": "stageflow-profile", "version": 1, "profile": {...}}."""
    return to_json(_ProfileDocument, _ProfileDocument(FORMAT, VERSION, profile))


def read_profile(data: bytes | str) -> Profile:
    """The profile that `write_profile` wrote; raises `InvalidInput` naming the faulty field."""
    values = num_values(data.encode(errors="replace") if isinstance(data, str) else data)
    if values > MOST_VALUES:
        raise InvalidInput(f"{values:,} values are too many: a profile has {MOST_VALUES:,} at most")
    try:
        document: _ProfileDocument = from_json(_ProfileDocument, data)
    except InvalidInput as fault:
        raise InvalidInput(f"not a profile: {fault}", ADVICE) from None
    check_profile(document.profile)
    return document.profile


def check_profile(profile: Profile) -> None:
    """Raise `InvalidInput` where a planner could not use the profile."""
    if not profile.layers:
        raise InvalidInput("the profile has no layers", ADVICE)
    if not 1 <= profile.microbatch <= MOST_SAMPLES:
        raise InvalidInput(
            f"microbatch: {profile.microbatch!s:.20} is not 1 to {MOST_SAMPLES}", ADVICE
        )
    name, count = Counter(layer.name for layer in profile.layers).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"layer {name!r} appears {count} times", ADVICE)
    for layer in profile.layers:
        _check_layer(layer)


def _check_layer(layer: Layer) -> None:
    for field, most in MOST.items():
        value = getattr(layer, field)
        if value is not None and not 0 <= value <= most:
            problem = f"layer {layer.name!r:.60}: {field} is {value!s:.20}"
            raise InvalidInput(f"{problem}, not between 0 and {most:g}", ADVICE)
