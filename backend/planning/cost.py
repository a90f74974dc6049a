"""The cost model of PipeDream's planner, once: seconds per minibatch of stages and cuts.

Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training",
SOSP 2019, section 3.1. docs/decisions/0002-cost-model.md says what was chosen and why.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Cluster, Device
from backend.profiles.profile import Profile

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Relative difference of two times below which they count as equal."""

DIRECTIONS = 2
"""A link's bandwidth is shared by both directions, as in the 4 (m-1)/m |w| of the authors' code,
and in the paper's 2 a_s / B for an activation there and its gradient back."""


def sync_seconds(parameter_bytes: Any, members: int, bandwidth: Any) -> Any:
    """Seconds in which `members` replicas synchronise their gradients, once per round of
    `members` minibatches: a ring sends 2 (m-1)/m |w| per worker and receives as much."""
    return DIRECTIONS * 2 * (members - 1) / members * parameter_bytes / bandwidth


def stage_seconds(
    inner: Any, parameter_bytes: Any, members: Any, bandwidth: Any, overlap: bool = True
) -> Any:
    """T^k = 1/m max( A^(k-1), sync ): seconds per minibatch of a stage on `members` members,
    each of which takes `inner` seconds for one. Without `overlap` synchronisation comes after
    compute, and the two are added (as in the authors' program for several levels)."""
    sync = sync_seconds(parameter_bytes, members, bandwidth)
    return (np.maximum(inner, sync) if overlap else inner + sync) / members


def fewest_members(
    inner: Any,
    parameter_bytes: Any,
    bandwidth: Any,
    limit: float,
    overlap: bool = True,
    least: Any = 1.0,
) -> Any:
    """The smallest m, `least` or more, with which `stage_seconds` is at most `limit`; infinite
    where none is (only for a limit of 0)."""
    alone, several = members_needed(inner, parameter_bytes, bandwidth, limit, overlap)
    return no_fewer(alone, several, least)


def no_fewer(alone: Any, several: Any, least: Any) -> Any:
    """Of the `members_needed` the fewest that are `least` or more."""
    return np.where(alone & (least <= 1), 1.0, np.maximum(several, np.maximum(least, 2.0)))


def members_needed(
    inner: Any, parameter_bytes: Any, bandwidth: Any, limit: float, overlap: bool = True
) -> tuple[Any, Any]:
    """(Whether one member keeps within `limit`, the fewest of two and more that do.) One member
    needs no synchronisation; from two on the time falls with m, so the larger root of the
    quadratic inequality in m is the bound."""
    limit = max(limit, 1e-300)
    with np.errstate(invalid="ignore", over="ignore"):
        ring = DIRECTIONS * 2 * parameter_bytes / bandwidth / limit
        load = inner / limit
        middle = ring if overlap else ring + load
        root = (middle + np.sqrt(np.maximum(middle * middle - 4 * ring, 0.0))) / 2
        count = np.maximum(np.ceil(np.maximum(root, load) * (1 - ROUNDING)), 2.0)
        short = stage_seconds(inner, parameter_bytes, count, bandwidth, overlap) > limit
    return inner <= limit, count + short


def cut_seconds(exchanged_bytes: Any, bandwidth: float) -> Any:
    """The paper's 2 a_s / B_k: the activations of one minibatch there, and back the gradients of
    those that have one."""
    return exchanged_bytes / bandwidth


def floor_seconds(profile: Profile, cluster: Cluster, overlap: bool = True) -> float:
    """What no plan can beat: all compute on all devices; each layer's stage with its weights
    on the fastest link and the best number of replicas."""
    compute = np.array([layer.compute_and_update for layer in profile.layers])
    weights = np.array([layer.parameter_bytes for layer in profile.layers], dtype=np.float64)
    counts = np.array([1, cluster.num_devices])[:, None]  # from two on, each more is faster
    fastest = max(level.bandwidth for level in cluster.levels)
    paced = compute / max(device.speed for device in cluster.each)
    alone = stage_seconds(paced, weights, counts, fastest, overlap).min(axis=0)
    return float(max(compute.sum() / cluster.speed, alone.max()))


@dataclass(frozen=True)
class Chain:
    """A profile as the planners see it: a chain with N layers and N + 1 gaps.

    Sums over layers i..j-1 are differences of prefix sums, which start with 0. `exchanged[s]`
    are the bytes that cross the cut in front of layer s, there and back (0 at both ends). Compute
    counts forward, backward and the optimizer's update (the paper has no update; profiles without
    one have 0 there).
    """

    profile: Profile
    device: Device

    @cached_property
    def compute(self) -> Floats:
        """Prefix sums of seconds on `device`."""
        return np.array(self.profile.seconds_in_front) / self.device.speed

    @cached_property
    def parameters(self) -> Floats:
        """Prefix sums of parameter bytes."""
        return np.array(self.profile.parameters_in_front, dtype=np.float64)

    @cached_property
    def exchanged(self) -> Floats:
        return np.array([0, *self.profile.graph.exchanged_bytes[:-1], 0], dtype=np.float64)


def spans(prefix: Floats) -> Floats:
    """Sums over layers s..j-1 as a matrix [j, s]; infinite where there is no layer (s >= j), so
    that no minimum takes it."""
    sums = np.maximum(prefix[:, None] - prefix[None, :], 0.0)
    sums[np.tri(len(prefix), dtype=np.bool_).T] = np.inf
    return sums
