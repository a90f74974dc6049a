"""Training on devices that are not there: what its ranks wait for instead of computing."""

from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class Emulation:
    """Every layer takes `scale` times its seconds in `profile` (over the device's speed), and
    every message `scale` times those that `cluster`'s links need for its bytes."""

    profile: Profile
    cluster: Cluster
    scale: float
