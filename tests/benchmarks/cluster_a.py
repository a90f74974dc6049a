"""The bandwidth at which compute and communication stand as on PipeDream's Cluster-A.

There, a worker of 16 spends on a minibatch of VGG-16 (64 images)
    compute   0.336 s: the published layer profile's 672.5 ms for 128 images, halved
    wire      0.830 s: a ring all-reduce of 553 MB, 2 15/16 |w| over the 1.25 GB/s of a server
so 2.47 seconds of wire per second of compute. That is the nominal ratio. By it data parallelism
would be at most 3.5 times slower than compute alone, while the paper reports 5.28 times (table
1): its wire gave less than its nominal bandwidth. `STALLED` is the ratio that explains the paper's
figure, where the wire is hidden behind the backward, two thirds of the compute.

Run as a rank, it measures a step of this machine's model: `cluster_a.py MODEL MICROBATCH`.
"""

import sys
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

NOMINAL = 0.830 / 0.336
STALLED = 5.28 - 1 + 2 / 3
"""Seconds of wire per second of compute."""
STEPS = 8


def bandwidth(num_bytes: float, seconds: float, ratio: float = STALLED) -> float:
    """Bytes per second at which an all-reduce of `num_bytes` between two takes `ratio` times
    the compute: each of two sends 2 1/2 |w|."""
    return num_bytes / (ratio * seconds)


def told(step: dict[str, float], rate: float) -> str:
    """How it was computed, in a line."""
    wire = f"{step['bytes'] / 1e6:.0f} MB of weights in {step['bytes'] / rate:.2f} s"
    nominal = bandwidth(step["bytes"], step["seconds"], NOMINAL)
    return (
        f"as Cluster-A: compute {step['seconds']:.3f} s a microbatch, {wire} (x{STALLED:.2f}): "
        f"{rate * 8 / 1e6:.0f} Mbit/s; by the nominal ratio {NOMINAL:.2f} it would be "
        f"{nominal * 8 / 1e6:.0f} Mbit/s"
    )


def main() -> None:
    """Both ranks compute at once, as data parallelism does; rank 0's median step."""
    from tests.benchmarks.contestants import Race, stepping, whole_model
    from tests.benchmarks.ranks import end
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world, (name, microbatch) = join(), sys.argv[1:]
    file = Path(__file__).parent / "models" / f"{name}.py"
    race = Race(world, file, int(microbatch), 1, (), ())
    step, taken = stepping(race, whole_model(race)), []
    for _ in range(STEPS):
        start = perf_counter()
        step()
        taken.append(perf_counter() - start)
    weights = sum(w.nbytes for w in race.definition().model(0).parameters())
    leave()
    found = {"seconds": median(taken), "bytes": weights}
    end(found if world.rank == 0 else None)


if __name__ == "__main__":
    main()
