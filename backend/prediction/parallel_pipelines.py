"""What two pipelines on one device compute together, from runs with one pipeline and with two."""

from backend.errors import InvalidInput
from backend.profiles.profile import Profile

MOST = 2.0
"""Two pipelines at most do twice the work of one."""


def gain_of_sharing(alone: float, together: float) -> float:
    """How much more a device computes per second with two pipelines on it than with one (1 to 2).

    `alone` is the seconds per microbatch of one pipeline on its devices, `together` those of each
    of two pipelines that share them, both measured on a device that never waits: in `together`
    seconds two microbatches are done instead of `together / alone`. (That such profiles decide on
    the number of pipelines is AvgPipe's: Chen et al., PPoPP 2023; the formula is ours.) More
    pipelines gain no more than two. Raises `InvalidInput` where the times are no times.
    """
    if not 0 < alone < float("inf") or not 0 < together < float("inf"):
        raise InvalidInput(
            f"{alone:g} and {together:g} seconds per microbatch cannot be measured times",
            "Give what one pipeline took, and what each of two took together; both above 0.",
        )
    return min(MOST, max(1.0, MOST * alone / together))


def with_gain(profile: Profile, gain: float) -> Profile:
    """`profile` as pipelines that share a device see it: they compute one at a time, each in the
    share of its time that the pipelines together need."""
    return profile.with_layers(layer.scaled(1 / gain, 1 / gain) for layer in profile.layers)
