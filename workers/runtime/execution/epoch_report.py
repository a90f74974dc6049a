"""What the training of an epoch sent and took, of all ranks, told at its end."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from backend.planning.plan import Plan
from workers.runtime.execution.losses import Losses
from workers.runtime.messages.coding import SentBytes
from workers.runtime.rank import Rank
from workers.runtime.reports.energy_meter import EnergyMeter
from workers.runtime.state.exchanges.spread import squares


class EpochReport:
    """Counts while `training`; every rank makes one, and tells at the same places."""

    def __init__(self, rank: Rank, plan: Plan) -> None:
        self._rank, self._plan = rank, plan
        world = rank.world
        self._sent, self._exchanged, self._summed = SentBytes(), SentBytes(), SentBytes()
        self._joules, self._meter = 0.0, EnergyMeter(world.device)
        tells = float(self._meter.tells)
        on_hosts = [float(host == world.host) for host in range(world.hosts)]
        told, *self._on_hosts = world.total([tells, *on_hosts])
        self._has_energy = told == world.size

    @contextmanager
    def training(self) -> Iterator[None]:
        """A part of the epoch is trained inside."""
        messages = self._rank.messages
        before = messages.sent
        self._meter.taken()
        try:
            yield
        finally:
            self._sent += messages.sent - before
            processors, gpu = self._meter.taken()
            self._joules += processors / self._on_hosts[self._rank.world.host] + gpu

    def tell(self, losses: Losses, samples: int, done: int) -> None:
        """What an epoch of so many samples, which ends after `done` microbatches, sent between
        stages, where it is coded, and between sites; and its joules, where all hosts count them."""
        world = self._rank.world
        if self._plan.codecs:
            coded, plain = world.total([self._sent.coded, self._sent.plain])
            losses.sent(coded, plain, done)
        if self._plan.codec_of_sums:
            buckets = (weights.buckets for weights in self._rank.state.weights.values())
            found = sum((each.sent for each in buckets if each), SentBytes())
            new, self._summed = found - self._summed, found
            coded, plain = world.total([new.coded, new.plain])
            losses.summed(coded, plain, done)
        if self._plan.is_apart:
            found = sum((w.exchanged for w in self._rank.state.weights.values()), SentBytes())
            new, self._exchanged = found - self._exchanged, found
            weights = (each.newest.values() for each in self._rank.state.weights.values())
            apart = squares(weights, self._rank.groups.peers)
            sent, sums, away, mean = world.total([new.coded, new.plain, *apart])
            losses.between_sites(sent, sums, math.sqrt(away / mean) if mean else 0.0, done)
        if self._has_energy and samples:
            [joules] = world.total([self._joules])
            if math.isfinite(joules):  # a counter may be lost meanwhile
                losses.took(joules / samples, done)
        self._sent, self._joules = SentBytes(), 0.0
