"""Bytes of device memory that a stage needs while it trains: one rule, asked of the schedule.

A schedule bounds how many microbatches a rank has in flight and how many weight versions it keeps
(`Schedule.in_flight`, `Schedule.live`). `memory_bytes` asks it about the ranks of a plan; while a
planner still searches, `MemoryRule` asks it about a stage with so many devices behind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, lcm
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Cluster
from backend.pipeline.memory import Holding
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.schedules.depth import StageDepth
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates, Shape
from backend.planning.channels.held import as_held, before_slicing
from backend.planning.cost import Floats
from backend.planning.local_heads import headed
from backend.planning.optimizers import optimizer_named
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.replica_bounds import Bounds
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from backend.profiles.state_precision import state_precision_named

Ints = NDArray[np.int64]

MESSAGES = 2
"""Bundles at each end beside those that wait for their backward: a stage computes on one and holds
the next, which has come already, or the one before, which is not sent yet."""


class Cuts(Protocol):
    """Where a model can be cut, as a rule sees it: bytes of the stages between two cuts."""

    @property
    def cut_bytes(self) -> Floats: ...
    @property
    def one_way(self) -> NDArray[np.bool_]: ...
    def weights(self, firsts: Ints, stop: int) -> Floats: ...
    def kept(self, firsts: Ints, stop: int) -> Floats: ...
    def constants(self, firsts: Ints, stop: int) -> Floats: ...
    def at_work(self, firsts: Ints, stop: int) -> Floats: ...


def stage_bytes(
    weights: Any,
    outputs: Any,
    bundles: tuple[Any, Any],
    copies: Any,
    in_flight: Any,
    recompute: bool = False,
    one_way: bool = False,
) -> Any:
    """Peak bytes of one replica of a stage, numbers or arrays: |w| copies + `waiting_bytes`.

    `copies` of the weights are their versions, one gradient, masters and the optimizer's state
    (`OptimizerKind.copies`). The layer at work comes on top (`at_work`), and what the process
    holds. What the allocator loses, and what waits to be sent over a link that is slower than the
    stage, are not known here.
    """
    return weights * copies + sum(waiting_bytes(outputs, bundles, in_flight, recompute, one_way))


def waiting_bytes(
    outputs: Any, bundles: tuple[Any, Any], in_flight: Any, recompute: bool, one_way: bool
) -> tuple[Any, Any]:
    """Bytes that microbatches in flight keep, numbers or arrays: those of activations, and of
    bundles.

        in_flight (activations + input bundle) + MESSAGES (input + output bundle)

    `bundles` come in and go out. With `recompute` only the bundles wait, beside the activations of
    one microbatch (PipeDream-2BW, section 3.3). With a `one_way` cut behind it a stage keeps
    nothing for a backward: of a microbatch in flight the output may wait until it is taken.
    """
    into, out = bundles
    messages = MESSAGES * (in_flight > 0) * (into + out)
    if one_way:
        return 0.0, in_flight * out + messages
    return (1 if recompute else in_flight) * outputs, in_flight * into + messages


def held_once(
    profile: Profile, stage: Stage, versions: int, optimizer: str, sharded: bool = False
) -> Holding:
    """What a replica of `stage` holds with `versions` of its weights alive, however many
    microbatches are in flight; `sharded` state is that of all replicas together. Raises
    `InvalidInput` on an unknown optimizer."""
    layers = profile.layers[stage.first : stage.stop]
    weights = sum(layer.parameter_bytes for layer in layers)
    sharers = stage.replicas if sharded else 1
    copies = optimizer_named(optimizer).copies(profile.state_precision, sharers)
    return Holding(
        weights=weights * min(versions, 1),
        versions=weights * max(versions - 1, 0),
        gradients=weights,
        optimizer=weights * (copies - 1),
        constants=sum(layer.constant_bytes for layer in layers),
    )


def held_in_flight(
    profile: Profile, stage: Stage, in_flight: int, recompute: bool = False, deferred: int = 0
) -> Holding:
    """What it holds with so many microbatches whose backward is still to come, of `deferred` ones
    the weights' half alone. Activations are what autograd was measured to keep, else every
    layer's output."""
    layers = profile.layers[stage.first : stage.stop]
    outputs = sum(layer.activation_bytes for layer in layers)
    cuts, one_way = profile.graph.cut_bytes, profile.graph.one_way[stage.stop - 1]
    bundles = cuts[stage.first - 1] if stage.first else 0, cuts[stage.stop - 1]
    kept, messages = waiting_bytes(outputs, bundles, in_flight, recompute, one_way)
    kept += deferred * sum(layer.deferred_bytes or 0 for layer in layers)
    return Holding(activations=kept, buffers=messages, work=at_work(layers) if in_flight else 0.0)


def at_work(layers: Iterable[Layer]) -> int:
    """Most bytes that one of the layers has alive while it works; those of layers whose work was
    not measured are not known."""
    return max((layer.work_bytes or 0 for layer in layers), default=0)


def replica_parts(
    profile: Profile, plan: Plan, shape: Shape, optimizer: str
) -> tuple[tuple[Holding, ...], ...]:
    """What each replica of each stage holds at the peak, by the bounds that the schedule promises.

    A device with several chunks holds the weights of all of them, and as many activations as
    its schedule has in flight, counted at its largest chunk; with shares each replica has its own
    number in flight. With local losses each stage has the head that suits the data. Parallel
    pipelines hold everything each, and what they exchange by (AvgPipe: a reference of the weights
    together); replicas with a codec of sums hold what they have not sent. Of layers that are split
    by channels each replica has its slice.
    """
    rule, order = schedule_named(plan.schedule), plan.partition.order
    whole = headed(profile, plan)
    finest = state_precision_named(profile.state_precision).finest
    again = plan.recompute and rule.recomputation_frees

    def held_at(at: RankCoordinates, stages: Sequence[Stage]) -> Holding:
        live, held, late = rule.live(at), rule.in_flight(at), rule.deferred(at)
        ordered = as_held(whole, plan, at.replica).in_order(order)
        once = [held_once(ordered, stage, live, optimizer, plan.shard_state) for stage in stages]
        waiting = [held_in_flight(ordered, stage, held, again, late) for stage in stages]
        own = sum(once, max(waiting, key=lambda holding: holding.total))
        reference = sum(x.parameter_bytes for s in stages for x in ordered.layers[s.first : s.stop])
        sums, replicas = plan.codec_of_sums, stages[0].replicas
        unsent = sums.held(reference, replicas) if sums and replicas > 1 else 0
        alone = own + Holding(gradients=unsent, process=profile.process_bytes)
        if plan.splits:
            alone += before_slicing(whole.in_order(order), stages, alone)
        kept = Holding(weights=plan.exchange_copies * finest * reference)
        return alone.times(plan.num_pipelines // plan.num_sites) + kept

    found: list[tuple[Holding, ...]] = []
    for pipeline_rank in range(shape.pipeline_size):
        group = shape.group_of(pipeline_rank)
        stages = [plan.partition.stages[number] for number in shape.stages_of(pipeline_rank)]
        first = shape.at(group[0])
        if first.shares_here or plan.splits:
            each = tuple(held_at(shape.coordinates[rank], stages) for rank in group)
        else:
            each = (held_at(first, stages),) * len(group)
        found.append(each)
    return tuple(found[shape.pipeline_rank_of(stage)] for stage in range(shape.num_stages))


def memory_parts(profile: Profile, plan: Plan, shape: Shape, optimizer: str) -> tuple[Holding, ...]:
    """Of each stage what the replica holds that holds most: those of `replica_parts`."""
    every = replica_parts(profile, plan, shape, optimizer)
    return tuple(max(each, key=lambda holding: holding.total) for each in every)


def memory_bytes(profile: Profile, plan: Plan, shape: Shape, optimizer: str) -> tuple[float, ...]:
    """Peak bytes of the devices that hold each stage: the sums of `memory_parts`."""
    return tuple(held.total for held in memory_parts(profile, plan, shape, optimizer))


@dataclass(frozen=True, slots=True)
class MemoryRule:
    """What a planner keeps within under `schedule`, while the pipeline is not known yet. What
    waits for the weights' half of a backward is left to the check of the whole plan (`fits`).

    limit      bytes of a device whose memory is not known, and the most of the others
    batch      microbatches per weight update
    recompute  only the bundles that come in are kept, and one microbatch's outputs
    total      devices of the whole pipeline, on which some schedules' bounds depend; 0 = not
               known: none are counted in front of a stage, which bounds from below
    precision  of the state, as the profile has it
    sharded    over the replicas of a stage is its state
    process    bytes that a rank's process holds beside its stages
    run_ahead  further microbatches in flight per hop
    """

    limit: float
    schedule: Schedule
    optimizer: str = "momentum"
    batch: int = 1
    recompute: bool = False
    total: int = 0
    precision: str = "float32"
    sharded: bool = False
    process: float = 0.0
    run_ahead: int = 0

    def holds(self, replicas: int, after: int) -> tuple[int, int]:
        """Microbatches in flight and weight versions of one of `replicas` with `after` devices
        behind."""
        before = max(0, self.total - replicas - after)
        at = StageDepth.of(before, replicas, after, self.batch, run_ahead=self.run_ahead)
        return self.schedule.in_flight(at), self.schedule.live(at)

    def bounds(self, most: int, after: int) -> Bounds:
        """What 1 to `most` replicas hold: both numbers never grow with the replicas, so only
        those from which on they are smaller are listed."""
        steps: dict[tuple[float, float], int] = {}
        at = 1
        while at <= most:
            held = self.holds(at, after)
            same = at if self.sharded else self._alike(held, at, most, after)
            steps.setdefault((held[0], held[1] + self._copies(at)), at)
            at = same + 1
        held, copies = np.array(list(steps), dtype=np.float64).T
        return Bounds(np.array(list(steps.values()), dtype=np.float64), held, copies)

    def _alike(self, held: tuple[int, int], low: int, high: int, after: int) -> int:
        """Up to how many replicas, of `low` to `high`, hold the same as `low` of them: twice as far
        each time, and then between the last two."""
        step = 1
        while low + step <= high and self.holds(low + step, after) == held:
            low += step
            step *= 2
        high = min(high, low + step - 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.holds(middle, after) == held else (low, middle - 1)
        return low

    def _copies(self, replicas: int) -> float:
        """Copies of the weights beside their versions."""
        sharers = replicas if self.sharded else 1
        return optimizer_named(self.optimizer).copies(self.precision, sharers)

    def fewest_replicas(self, cuts: Cuts, firsts: Ints, stop: int, bounds: Bounds) -> Floats:
        """The fewest replicas of the stages firsts..stop that fit, a row for each of the bounds
        where they have rows; infinite where none do."""
        needs = stage_bytes(
            cuts.weights(firsts, stop)[:, None],
            cuts.kept(firsts, stop)[:, None],
            (cuts.cut_bytes[firsts][:, None], cuts.cut_bytes[stop]),
            bounds.copies[..., None, :],
            bounds.in_flight[..., None, :],
            self.recompute and self.schedule.recomputation_frees,
            bool(cuts.one_way[stop]),
        )
        fixed = cuts.constants(firsts, stop) + cuts.at_work(firsts, stop) + self.process
        fits = needs + fixed[:, None] <= self.limit
        first = np.take_along_axis(bounds.replicas, fits.argmax(axis=-1), axis=-1)
        return np.where(fits.any(axis=-1), first, inf)

    def shared_fits(self, cuts: Cuts, firsts: Ints, stop: int, machine: int) -> NDArray[np.bool_]:
        """Whether a pipeline of the layers firsts..stop may fit on `machine` devices at all:
        each of its stages holds what one alone would, its weights once and one microbatch. What is
        shared may be with devices of other machines."""
        _, versions = self.holds(1, 0)
        weights = cuts.weights(firsts, stop)
        outputs = 0.0 if cuts.one_way.any() else cuts.kept(firsts, stop)
        copies = versions + (1 if self.sharded else self._copies(1))
        needed = stage_bytes(weights, outputs, (0.0, 0.0), copies, 1)
        needed = needed + cuts.constants(firsts, stop)
        return np.asarray(needed <= machine * (self.limit - self.process))

    def fits(self, profile: Profile, cluster: Cluster, partition: Partition) -> bool:
        """Whether every replica keeps within the memory of its device, as `replica_parts`
        counts."""
        segment = 2 * partition.num_devices * lcm(self.batch, *partition.rounds)
        name, shard = self.schedule.name, self.sharded
        plan = Plan("", partition, name, 1, self.batch, self.recompute, shard_state=shard)
        shape = replace(plan, run_ahead=self.run_ahead).shape(segment)
        held = replica_parts(profile, plan, shape, self.optimizer)
        return all(
            need.total <= min(self.limit, cluster.at(device).memory or inf)
            for needs, stage in zip(held, partition.stages, strict=True)
            for need, device in zip(needs, stage.devices, strict=True)
        )
