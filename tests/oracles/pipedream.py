"""PipeDream's planner as the paper has it (SOSP 2019, section 3.1): read this first.

A table over layers i..j and a number of workers m, filled level by level, innermost first:

    A^0(i..j)    = sum of the compute of layers i..j
    T^k(i..j, m) = 1/m max( A^(k-1)(i..j), sync of i..j between m members of level k )
    A^k(i..j, m) = min of T^k(i..j, m) and, over every split s and m' < m, of
                   max( A^k(i..s, m - m'), transfer over the cut behind s, T^k(s+1..j, m') )

A member of level k is a device at k = 1 and a whole machine above it, so that a stage of level k is
the best pipeline of one machine, copied. The seconds are those of `backend.planning.cost`. The
planner of the product, `backend.planning.pipedream.planner`, is as fast or faster on every chain:
there a stage may also span machines and leave devices idle.
"""

from functools import cache

from backend.cluster.cluster import Cluster
from backend.planning.cost import cut_seconds, stage_seconds
from backend.profiles.profile import Profile


def bottleneck_of_the_paper(profile: Profile, cluster: Cluster) -> float:
    """A^L(1..N, all members of the outermost level): seconds per minibatch of the best plan for
    a chain on devices that are all alike."""
    layers, cuts, levels = profile.layers, profile.graph.exchanged_bytes, cluster.levels

    @cache
    def best(level: int, first: int, stop: int, members: int) -> float:
        """A^k(first..stop-1, members)."""
        if level == 0:
            compute = sum(layer.compute_and_update for layer in layers[first:stop])
            return compute / cluster.device.speed
        whole = stage(level, first, stop, members)
        splits = (
            max(
                best(level, first, split, members - last),
                cut_seconds(cuts[split - 1], levels[level - 1].bandwidth),
                stage(level, split, stop, last),
            )
            for split in range(first + 1, stop)
            for last in range(1, members)
        )
        return min([whole, *splits])

    def stage(level: int, first: int, stop: int, members: int) -> float:
        """T^k(first..stop-1, members)."""
        inside = levels[level - 2].count if level > 1 else 1
        inner = best(level - 1, first, stop, inside)
        weights = sum(layer.parameter_bytes for layer in layers[first:stop])
        return float(stage_seconds(inner, weights, members, levels[level - 1].bandwidth))

    return best(len(levels), 0, len(layers), levels[-1].count)
