"""What an executor without any cost would reach: the program that ran, on a clock, with the seconds
of compute that were measured in that very run, and the wires' bandwidth, a wire to each host.

What is missing to the slowest stage's bound there, the schedule and the wire take; what is missing
between this and the measured rate, the executor.
"""

from statistics import mean

import torch.distributed as dist

from backend.pipeline.actions import Collective, Compute, Flow, Message
from backend.pipeline.links import ServerLinks
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.simulate import OWN_LINKS, simulate
from backend.prediction.shapes import microbatch_unit
from backend.prediction.steady import seconds_per_microbatch

LOOPBACK = 2.5e9
PAYLOAD = 1448 / 1514
"""Of the bytes of an Ethernet frame, those that a TCP stream may fill."""
Seconds = dict[tuple[str, int], float]


class Measured:
    """Mean seconds of each kind of action of each rank, over the middle half of its spans."""

    def __init__(self, seconds: list[Seconds], carried: tuple[int, ...], bandwidth: float) -> None:
        self._seconds, self._carried, self._bandwidth = seconds, carried, bandwidth

    def compute(self, rank: int, action: Compute) -> float:
        return self._seconds[rank][type(action).__name__, action.stage]

    def transfer(self, message: Message, source: int, to: int) -> float:
        behind = message.stage + 1 if message.flow is Flow.ACTIVATION else message.stage
        return self._carried[behind] / self._bandwidth

    def collective(self, action: Collective) -> float:
        raise AssertionError(f"a straight pipeline has no {action}")


def seconds_on_a_clock(lap, bandwidth: float | None) -> float:
    """Of a microbatch, by the same rule as a prediction; 0 with a codec, whose own seconds no span
    tells. Every rank calls it."""
    if lap.plan.codecs:
        return 0.0
    everything: list = [None] * lap.race.world.size
    dist.all_gather_object(everything, taken(lap.recorder.spans))
    specs = lap.rank.stages.layered.specs
    bundles = [specs[stage.first] for stage in lap.plan.partition.stages]
    carried = tuple(sum(spec.num_bytes for spec in bundle) for bundle in bundles)
    wire = bandwidth * PAYLOAD if bandwidth else LOOPBACK
    program = lower(schedule(lap.plan.schedule), lap.program.shape)
    links = ServerLinks(tuple(range(lap.race.world.size))) if bandwidth else OWN_LINKS
    timeline = simulate(program, Measured(everything, carried, wire), links)
    return seconds_per_microbatch(timeline, lap.program.shape, microbatch_unit(lap.plan))


def taken(spans) -> Seconds:
    """Mean seconds per (kind, stage) of one rank's computes."""
    computed = [span for span in spans if isinstance(span.action, Compute)]
    found: dict[tuple[str, int], list[float]] = {}
    for span in computed:
        found.setdefault((type(span.action).__name__, span.action.stage), []).append(span.seconds)
    middle = {key: each[len(each) // 4 : -(len(each) // 4) or None] for key, each in found.items()}
    return {key: mean(each) for key, each in middle.items()}
