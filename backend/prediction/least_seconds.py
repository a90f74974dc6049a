"""What no plan is faster than: compute by the sum of speeds, and what any partition must send."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from backend.cluster.cluster import Cluster
from backend.pipeline.codecs.catalog import PLAIN
from backend.pipeline.schedules.catalog import schedule
from backend.planning.cost import Floats
from backend.planning.plan import Plan
from backend.prediction.question import Question
from backend.profiles.profile import Profile

WEIGHTS = 0
"""Rows of a tensor that is a weight: it is as large in microbatches of any size."""
EACH = 256
"""Devices up to which a stage on any number of them is thought of; of more on one or on all."""
STEPS = 40
"""Halvings after which the least time is known well enough."""


@dataclass(frozen=True)
class LeastSeconds:
    """Of a minibatch of `plan`, for the planners and schedules that `question` admits and for
    `plan` itself.

    Within a time, a tensor is either sent between stages or not: one that takes longer over all
    links at once that two stages may have joins its layers. Layers that are joined are in one
    stage: on one device, or on several that sum the gradients of their weights once per update,
    over the fastest links that a ring of so many may have. The least time in which each of them
    can be computed so, and all layers on all devices by the sum of their speeds, with as few
    updates as an admitted schedule has, is a bound: of schedules with chunks and of any order of
    the layers too. Latency and waiting are not in it.
    """

    question: Question
    plan: Plan

    @cached_property
    def seconds(self) -> float:
        question, plan = self.question, self.plan
        profile = question.at(plan.microbatch)
        each_update = sum(layer.update for layer in profile.layers)
        update = each_update * self._samples / float(self._per_update.max())
        alone = min(each.compute / each.microbatch for each in self._profiles)
        cluster = question.cluster
        low = (self._samples * alone + update) / cluster.speed_at_once / question.gain
        if cluster.num_devices == 1 or not self._says_bytes or self._is_enough(low):
            return low
        high = self._samples * alone / float(self._speeds[0])  # on the fastest device alone
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._is_enough(middle) else (middle, high)
        return low

    @property
    def _samples(self) -> int:
        return self.plan.batch * self.plan.microbatch

    @cached_property
    def _profiles(self) -> tuple[Profile, ...]:
        question = self.question
        return question.at(self.plan.microbatch), question.profile, *question.further

    @property
    def _says_bytes(self) -> bool:
        """Whether tensors and gradients travel as they are."""
        question, plan = self.question, self.plan
        codes = question.codec != PLAIN or question.codec_of_sums or any(plan.codecs)
        return not (codes or question.split_channels or question.sites or plan.splits)

    def _is_enough(self, seconds: float) -> bool:
        """Whether layers that this time joins can each be computed within it."""
        blocks = self._blocks(seconds)
        compute = np.bincount(blocks, self._compute)[blocks] * self._samples
        weights = np.bincount(blocks, self._weights)[blocks]
        fits = (compute[:, None] <= seconds * self._speeds) & (
            weights[:, None] * self._sums <= seconds
        )
        return bool(fits.any(axis=1).all())

    def _blocks(self, seconds: float) -> list[int]:
        """Per layer the first one of those that it is joined with."""
        first = list(range(len(self._compute)))

        def root(layer: int) -> int:
            while first[layer] != layer:
                first[layer] = first[first[layer]]
                layer = first[layer]
            return layer

        for layers, taken in self._tensors:
            if taken * self._samples > seconds:
                found = [root(layer) for layer in layers]
                for each in found:
                    first[each] = min(found)
        return [root(layer) for layer in range(len(first))]

    @cached_property
    def _compute(self) -> Floats:
        """Seconds of a sample per layer."""
        each = [[x.compute / p.microbatch for x in p.layers] for p in self._profiles]
        return np.asarray(np.min(each, axis=0), np.float64)

    @cached_property
    def _weights(self) -> Floats:
        return np.array([layer.parameter_bytes for layer in self.question.profile.layers], float)

    @cached_property
    def _tensors(self) -> list[tuple[tuple[int, ...], float]]:
        """The layers that a tensor joins where it is not sent, and the seconds of sending it for a
        sample. Those of smaller microbatches are rounded to whole bytes."""
        size = self.question.profile.microbatch
        rounding = 0.5 if size > 1 else 0.0
        capacity = self._pipelines * _between_stages(self.question.cluster)
        found = []
        for tensor in self.question.profile.graph.tensors:
            each = tensor.bytes / size - rounding
            if tensor.rows != WEIGHTS and each > 0:
                found.append(((tensor.producer, *tensor.readers), each / capacity))
        return found

    @cached_property
    def _pipelines(self) -> int:
        """Most pipelines beside each other, whose messages have links of their own."""
        side_by_side = any(schedule(name).parallel for name in self.question.schedules)
        return max(self.plan.num_pipelines, self.question.pipelines if side_by_side else 1)

    @cached_property
    def _counts(self) -> list[int]:
        """Devices of a stage that are thought of."""
        most = self.question.cluster.num_devices
        return list(range(1, most + 1)) if most <= EACH else [1, most]

    @cached_property
    def _speeds(self) -> Floats:
        """Of so many devices together, the fastest."""
        cluster = self.question.cluster
        every = list(accumulate(sorted((each.speed for each in cluster.each), reverse=True)))
        found = np.array([every[count - 1] for count in self._counts])
        return np.asarray(np.minimum(found, cluster.speed_at_once) * self.question.gain)

    @cached_property
    def _per_update(self) -> Floats:
        """Samples per update of so many replicas, at most: of the schedules that are admitted."""
        question, samples = self.question, self._samples
        rules = [schedule(name) for name in {*question.schedules, self.plan.schedule}]
        batch = 0
        if any(rule.batched for rule in rules):
            batch = max(question.samples * question.update_times, samples) * self._pipelines
        size = max(question.profile.microbatch, self.plan.microbatch)
        rounds = 0 if all(rule.batched for rule in rules) else size * self._pipelines
        return np.maximum(batch, rounds * np.arange(1, question.cluster.num_devices + 1))

    @cached_property
    def _sums(self) -> Floats:
        """Seconds per byte of weights in which so many replicas sum their gradients, for as many
        samples as the minibatch has; of several at the fewest where not each number is thought
        of."""
        question = self.question
        counts = np.arange(1, question.cluster.num_devices + 1)
        updates = self._samples / self._per_update
        every = 2 * (counts - 1) / counts / _ring_rates(question.cluster) * updates
        if len(self._counts) == len(counts):
            return np.asarray(every)
        return np.array([0.0, every[1:].min()])


def least_seconds(question: Question, plan: Plan) -> float:
    """The bound of a minibatch of `plan`."""
    return LeastSeconds(question, plan).seconds


def _ring_rates(cluster: Cluster) -> Floats:
    """Per number of members, from 1, the highest bandwidth of the slowest link of a ring: where
    they are more than a machine has, one link at least leaves it."""
    counts = np.arange(1, cluster.num_devices + 1)
    found = np.zeros(len(counts))
    for size, level in zip(cluster.sizes[1:], cluster.levels, strict=True):
        found[counts <= size] = np.maximum(found[counts <= size], level.bandwidth)
    return found


def _between_stages(cluster: Cluster) -> float:
    """The most bytes per second from one stage to another: inside of machines every pair of a
    device of each has a link, and each machine one that leaves it, on every level."""
    inner, machines = cluster.levels[0], cluster.num_devices // cluster.sizes[1]
    pairs = (inner.count // 2) * (inner.count - inner.count // 2)
    outer = (
        cluster.num_devices // size * level.bandwidth
        for size, level in zip(cluster.sizes[1:], cluster.levels[1:], strict=False)
    )
    return machines * pairs * inner.bandwidth + sum(outer)
