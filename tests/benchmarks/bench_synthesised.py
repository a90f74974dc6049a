"""Orders found for plans of published profiles and of random ones, beside the catalog's schedules.

    python -m tests.benchmarks.bench_synthesised [--write]

Each profile is cut into four stages of about equal compute, one on each server of Cluster-C (eight
where a schedule has two chunks), 8 microbatches a batch. A cell is the batch's simulated seconds
as a multiple of the compute of the slowest of the four stages. "found as S": straight, on no stage
more microbatches than S holds there, or as a V (marked so) of at most twice as many halves as S
holds on its fullest rank. The last column is the gain over the fastest flush schedule, straight,
interleaved or a V, that holds as little.
"""

import random
from collections.abc import Iterator

from backend.cluster.presets import cluster_c
from backend.errors import StageflowError
from backend.pipeline.chunk_placement import Placement
from backend.planning.balanced import even_stops, interleaved, side_by_side
from backend.planning.plan import Partition, Plan
from backend.prediction.predict import predicted_durations, predicted_program
from backend.prediction.synthesised import Synthesised, families
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.benchmarks.evidence import evidence
from tests.unit.planning.published import MODELS, load

STAGES, BATCH, RANDOM = 4, 8, 10
LIMITS = ("1f1b-flush", "zb-h1", "zb-h2")
OTHERS = ("zb-h1", "zb-h2", "zb-v", "v-half", "interleaved")


def main() -> None:
    found = [f"found as {name}" for name in LIMITS]
    evidence("simulator", "bench_synthesised").table(
        "synthesised", ["profile", *found, *OTHERS, "gain at each limit over the best"], rows()
    )


def rows() -> Iterator[list[str]]:
    profiles = [load(name) for name in MODELS]
    for profile in [*profiles, *map(a_random_one, range(RANDOM))]:
        straight = side_by_side(even_stops(profile, STAGES))
        bound = _bound(profile, _plan(profile, straight, "zb-h1"))
        at = [
            list(families(profile, cluster_c(STAGES), _plan(profile, straight, name)))
            for name in LIMITS
        ]
        found = [min(each, key=lambda one: one.found.seconds) for each in at]
        times = [_marked(one, one.found.seconds / bound) for one in found]
        others = [_other(profile, straight, name, bound) for name in OTHERS]
        known = [min((one.best for one in each), key=lambda one: one.seconds) for each in at]
        pairs = zip(known, found, strict=True)
        gains = " / ".join(f"{b.seconds / f.found.seconds:.3f} ({b.name})" for b, f in pairs)
        yield [profile.name, *times, *others, gains]


def _marked(found: Synthesised, times: float) -> str:
    return f"{times:.3f}{' V' if found.partition.placement is Placement.V else ''}"


def a_random_one(seed: int) -> Profile:
    """Sixteen layers of 1 to 9 ms, backwards of one to three times as much."""
    dealt = random.Random(seed)
    layers = []
    for number in range(16):
        forward = dealt.uniform(1e-3, 9e-3)
        size = dealt.randint(10**5, 10**7)
        layers.append(
            Layer(f"l{number}", "Linear", forward, forward * dealt.uniform(1, 3), size, 10**6)
        )
    return Profile(f"random {seed}", ModelGraph.chain(tuple(layers)), 8)


def _plan(profile: Profile, partition: Partition, name: str) -> Plan:
    return Plan("benchmark", partition, name, profile.microbatch, BATCH)


def _bound(profile: Profile, plan: Plan) -> float:
    durations = predicted_durations(profile, cluster_c(STAGES), plan)
    pairs = zip(durations.forward, durations.backward, strict=True)
    return BATCH * max(map(sum, pairs))


def _other(profile: Profile, straight: Partition, name: str, bound: float) -> str:
    """ "-" where it cannot be planned."""
    try:
        chunked = interleaved(profile, STAGES, 1, 2)
        whole = straight if name.startswith("zb-h") else chunked
        plan = _plan(profile, whole, "zb-h1").under(name, BATCH)
        _, timeline = predicted_program(profile, cluster_c(STAGES), plan, BATCH)
    except StageflowError:
        return "-"
    return f"{timeline.makespan / bound:.3f}"


if __name__ == "__main__":
    main()
