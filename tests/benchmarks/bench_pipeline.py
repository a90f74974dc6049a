"""Programs from a thousand to ten million actions: seconds of lowering, verifying, simulating.

Run `python tests/benchmarks/bench_pipeline.py [largest exponent, 7]`, or `make bench`. CPU
seconds of this process, the fast path beside the readable one in the same run. Not collected
by pytest.
"""

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

from backend.pipeline.columnar.lower import lower_table
from backend.pipeline.columnar.simulate import simulate_table
from backend.pipeline.columnar.soundness import is_sound
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import check
from backend.prediction.uniform import UniformDurations

POSITIONS = 8
READABLE_UP_TO = 100_000
DURATIONS = UniformDurations(1.0, 1.0, 0.5, 0.1)
CASES = {
    "pipedream": {},
    "1f1b-flush": {"batch": 16},
    "2bw": {"batch": 16},
    "zb-h1": {"batch": 16},
    "interleaved": {"batch": 16, "chunks": 4},
}


def shape_of(options: dict[str, int], actions: int) -> Shape:
    """About as many actions: seven per microbatch and stage."""
    unit = options.get("batch", 1)
    count = actions // (7 * POSITIONS * options.get("chunks", 1)) // unit * unit
    return Shape((1,) * POSITIONS, max(unit, count), **options)


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Of one time in the mean; a program that takes a millisecond is no measurement."""
    gc.collect()
    start = process_time()
    for _ in range(times):
        work()
    return (process_time() - start) / times


def fast(name: str, shape: Shape, times: int) -> tuple[int, list[float]]:
    table = lower_table(schedule(name), shape)
    assert is_sound(table)
    return table.num_actions, [
        seconds(lambda: lower_table(schedule(name), replace(shape)), times),
        seconds(lambda: is_sound(table), times),
        seconds(lambda: simulate_table(table, DURATIONS), times),
    ]


def readable(name: str, shape: Shape) -> list[float]:
    program = []
    return [
        seconds(lambda: program.append(lower(schedule(name), shape))),
        seconds(lambda: check(program[0])),
        seconds(lambda: simulate(program[0], DURATIONS)),
    ]


def main(largest: int) -> None:
    head = "schedule", "actions", "lower", "verify", "simulate", "seconds", "actions/s", "ratio"
    print("{:12} {:>11} {:>8} {:>8} {:>9} {:>8} {:>11} {:>7}".format(*head))
    for name, options in CASES.items():
        for exponent in range(3, largest + 1):
            shape = shape_of(options, 10**exponent)
            actions, parts = fast(name, shape, max(1, 10 ** (6 - exponent)))
            total = sum(parts)
            slow = sum(readable(name, shape)) if actions <= READABLE_UP_TO else None
            ratio = f"{slow / total:6.1f}x" if slow else ""
            times = "{:8.4f} {:8.4f} {:9.4f}".format(*parts)
            print(f"{name:12} {actions:11,} {times} {total:8.4f} {actions / total:11,.0f} {ratio}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
