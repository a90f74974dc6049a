"""What sites exchange of a stage: bytes and seconds, on average over its updates."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.cluster.ring import RingLinks
from backend.planning.sites import Sites
from backend.profiles.profile import Profile
from backend.profiles.state_precision import state_precision_named


@dataclass(frozen=True, slots=True)
class SiteExchange:
    """`stage_bytes` are those of a stage's weights in the finest precision that the state has: a
    sum of them goes round the sites, every so many updates. An update counts with its share of one
    (ours: the rank waits for the whole sum at once, and between two not at all). Of a filter what
    it sends is not known: all of it counts, from each site to every other (an upper bound)."""

    sites: Sites
    stage_bytes: tuple[float, ...]

    @classmethod
    def of(
        cls, sites: Sites | None, profile: Profile, weights: Sequence[float]
    ) -> "SiteExchange | None":
        """Of stages with so many bytes of weights; None where pipelines have no rule of their own
        choice."""
        if sites is None:
            return None
        finest = state_precision_named(profile.state_precision).finest
        return cls(sites, tuple(finest * each for each in weights))

    def sent(self, stage: int, members: int) -> float:
        """Bytes that one of `members` sites sends after an update, 2 (s-1)/s |w| each time; none
        where all are on the same devices."""
        if not self.sites.devices:
            return 0.0
        if self.is_bound:
            return (members - 1) * self.stage_bytes[stage]
        return 2 * (members - 1) / members * self.stage_bytes[stage] / self.sites.period

    @property
    def is_bound(self) -> bool:
        """Whether less may be sent than is counted."""
        return "threshold" in self.sites.kind.settings

    def seconds(self, stage: int, passing: float, over: RingLinks) -> float:
        """Those of an exchange that passes over the weights in `passing` seconds, after an
        update."""
        num_bytes = self.stage_bytes[stage] * (over.members / 2 if self.is_bound else 1)
        sent = over.seconds(num_bytes) if self.sites.devices else 0.0
        return (passing + sent) / self.sites.period
