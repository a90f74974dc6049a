"""Between which seconds a run of a plan is expected: the range of a prediction.

The logarithm of measured over predicted seconds is taken as normal, as it was measured in
docs/evidence/prediction.md; how far equal layers of the profile differed comes on top.
"""

from math import exp, sqrt

from backend.profiles.profile import Profile

OWN_CORES, IN_TURNS = (0.0, 0.08), (0.02, 0.11)
"""Mean and deviation of the logarithm where each rank has its device or core to itself (2 ranks on
2 cores), and where ranks take turns on cores (4 ranks on 2), whose cost the prediction has."""
NINE_OF_TEN = 1.645
"""Deviations on either side of a normal mean that hold nine of ten values."""
ESTIMATED = (0.86, 2.75)
"""Of seconds that are estimated and not simulated (`backend.prediction.estimated`)."""


def likely_seconds(seconds: float, profile: Profile, in_turns: bool) -> tuple[float, float]:
    """From and to how many seconds nine of ten runs are expected that are predicted to take
    `seconds`; `in_turns`: ranks take turns on cores."""
    mean, deviation = IN_TURNS if in_turns else OWN_CORES
    wide = NINE_OF_TEN * sqrt(deviation**2 + (_spread(profile) / NINE_OF_TEN) ** 2)
    return seconds * exp(mean - wide), seconds * exp(mean + wide)


def _spread(profile: Profile) -> float:
    """Of the profile's seconds, as a share: that of its layers, each for its part of them."""
    known = sum((layer.spread or 0.0) * layer.compute for layer in profile.layers)
    return known / profile.compute if profile.compute else 0.0
