"""A run on cores that others used too: what they took, and the prediction on what was left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backend.cluster.cluster import Cluster
from backend.comparison.other_links import OtherLinks
from backend.cores import MUCH
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile
from backend.runs.events import CoreUse

LEAST_SECONDS = 0.1
"""Of a segment: the system counts busy cores in hundredths of a second, so a shorter one tells
nothing."""


@dataclass(frozen=True, slots=True)
class SharedCores:
    """What others took of the cores in the last segment of a run.

    taken     share of the time in which the ranks could compute that others had the cores
    by_rank   the same of each rank
    others    cores that were busy with others, on average
    cores     cores that the ranks may use; `load` processes ready to run before the segment
    emulated  the ranks wait in place of computing: `taken` and `by_rank` are shares of the whole
              segment in which they were ready and had no core, whoever had it
    """

    taken: float
    by_rank: Mapping[int, float]
    others: float
    cores: int
    load: float
    emulated: bool = False

    @property
    def is_said(self) -> bool:
        return self.taken >= MUCH


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is laid beside a run's measurement.

    prediction    of its plan, where each rank has its core or its turns on it
    cores         what others took of the cores; None = not measured, or not on CPUs
    at_share      the prediction at the share of its core that each rank had; None where others
                  took less than is said
    profile_id, profile_taken   the profile that it was predicted from, and the share of a core that
                  others took while it was measured (None = not measured)
    other_links   of the plan, that the run did not have; None = it has a machine for each
    """

    prediction: Prediction | None = None
    cores: SharedCores | None = None
    at_share: Prediction | None = None
    profile_id: int | None = None
    profile_taken: float | None = None
    other_links: OtherLinks | None = None


def taken_by_others(uses: Sequence[CoreUse], *, in_turns: bool) -> SharedCores | None:
    """What `uses` of the ranks say; None where they say nothing, or the segment was too short to.
    `in_turns`: the prediction has
    the ranks take turns on the cores already.

    A rank that waits in the run queue waits for others than this run where each rank has a core.
    Where ranks take turns, it also waits for other ranks: then of its wait as much counts as
    others had of the busy cores beside itself (ours)."""
    heard = [use for use in uses if use.cpu + use.waited > 0]
    if not heard or max(use.seconds for use in heard) < LEAST_SECONDS:
        return None
    hosts = {use.host: [each for each in heard if each.host == use.host] for use in heard}
    others = {host: _others(mine) for host, mine in hosts.items()}
    waits = {
        use.rank: use.waited * (_part(use, hosts[use.host], others[use.host]) if in_turns else 1.0)
        for use in heard
    }
    seconds, cores = max(use.seconds for use in heard), sum(map(_cores, hosts.values()))
    return SharedCores(
        taken=sum(waits.values()) / sum(use.cpu + use.waited for use in heard),
        by_rank={use.rank: waits[use.rank] / (use.cpu + use.waited) for use in heard},
        others=min(cores, sum(others.values()) / seconds) if seconds else 0.0,
        cores=cores,
        load=max(use.load for use in heard),
    )


def short_of_cores(uses: Sequence[CoreUse]) -> SharedCores | None:
    """The same of emulated ranks. They hardly compute, so whatever they wait for a core, be it for
    each other, is time that the emulated devices would not have taken."""
    found = taken_by_others(uses, in_turns=False)
    if found is None:
        return None
    parts = {use.rank: min(1.0, use.waited / use.seconds) for use in uses if use.seconds}
    taken = sum(parts.values()) / len(parts) if parts else 0.0
    return replace(found, taken=taken, by_rank=parts, emulated=True)


def _cores(mine: Sequence[CoreUse]) -> int:
    return max(use.cores for use in mine)


def _others(mine: Sequence[CoreUse]) -> float:
    """Seconds that the cores of a host, which has these ranks, were busy with others."""
    return max(0.0, max(use.busy for use in mine) - sum(use.process for use in mine))


def _part(use: CoreUse, mine: Sequence[CoreUse], others: float) -> float:
    """The share of a rank's wait in which others than the ranks of its host had the cores."""
    beside = sum(each.process for each in mine) - use.process + others
    return others / beside if beside > 0 else 1.0


def takes_turns(profile: Profile, cluster: Cluster, plan: Plan) -> bool:
    """Whether a prediction of `plan` has its ranks take turns on the cores of their hosts."""
    return PlanDurations.of(profile, cluster, plan).takes_turns


def at_share(profile: Profile, cluster: Cluster, plan: Plan, found: SharedCores) -> Prediction:
    """What `plan` does where each device computes in the share of time that others left it: its
    seconds are divided by that share. Raises as `predict`, but does not check memory."""
    durations = PlanDurations.of(profile, cluster, plan)
    taken: dict[int, list[float]] = {}
    for rank, share in found.by_rank.items():
        taken.setdefault(durations.device(rank), []).append(share)
    devices = tuple(
        replace(device, memory=None, speed=device.speed * (1 - _mean(taken.get(number, ()))))
        for number, device in enumerate(cluster.each)
    )
    return predict(profile, replace(cluster, devices=devices), plan)


def _mean(shares: Sequence[float]) -> float:
    """Of the pipelines on a device; below 1, so that a device has some speed."""
    return min(sum(shares) / len(shares), 0.999) if shares else 0.0
