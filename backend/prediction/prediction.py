"""What a plan will do on a cluster: the answer that pages and commands show."""

from dataclasses import dataclass

from backend.planning.plan import Plan
from backend.profiles.state_precision import StatePrecision


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds, bytes and ratios of one plan.

    seconds_per_minibatch  steady state, by simulating the program that will run; a
                           minibatch is one weight update's samples (plan.batch microbatches)
    samples_per_second     throughput in the same steady state
    bubble                 share of rank time spent waiting, warm-up and drain included, over
                           the simulated segment
    sent_bytes             bytes sent by all ranks per minibatch (activations, gradients,
                           weight synchronisation)
    memory_bytes           peak bytes per stage (one replica): weights, versions, gradients,
                           optimizer state, activations in flight
    stage_seconds          compute seconds of one microbatch per stage (not divided by replicas)
    staleness              updates between a stage's forward and the newest weights, worst stage
    versions               weight versions alive per stage
    seconds_range          from and to how many seconds per minibatch nine of ten runs are expected
                           (`backend.prediction.likely`); None of a plan kept before there was one
    plain_bytes            what `sent_bytes` would be without codecs; None where there are none
    is_simulated           False where the plan is too large for that: then its bounds stand for it
    optimizer              whose state counts in `memory_bytes`, as a `Question` names it; "" of a
                           plan kept before that was told
    state_precision        in which that counts weights and state
    """

    plan: Plan
    seconds_per_minibatch: float
    samples_per_second: float
    bubble: float
    sent_bytes: float
    memory_bytes: tuple[float, ...]
    stage_seconds: tuple[float, ...]
    staleness: int
    versions: tuple[int, ...]
    is_simulated: bool = True
    seconds_range: tuple[float, float] | None = None
    plain_bytes: float | None = None
    optimizer: str = ""
    state_precision: StatePrecision = "float32"

    @property
    def rate_range(self) -> tuple[float, float] | None:
        """The samples/s, from and to, that its range of seconds says; None without one."""
        if self.seconds_range is None or not all(self.seconds_range):
            return None
        samples = self.plan.batch * self.plan.microbatch
        fast, slow = self.seconds_range
        return samples / slow, samples / fast
