"""Programs from a thousand to ten million actions: seconds of lowering, verifying, simulating,
and of what a rank does before its first action.

Run `python -m tests.benchmarks.bench_pipeline [largest exponent, 7] [--write]`, or `make bench`.
CPU seconds of this process, the columns beside the readable oracles of the tests in the same run.
Verifying includes the walk that shows that no rank waits for ever. Not collected by pytest.
"""

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from backend.pipeline.lower import lower  # noqa: E402
from backend.pipeline.schedules.catalog import schedule  # noqa: E402
from backend.pipeline.shape import Shape  # noqa: E402
from backend.pipeline.simulate import simulate  # noqa: E402
from backend.pipeline.verify import check  # noqa: E402
from backend.prediction.uniform import UniformDurations  # noqa: E402
from tests.benchmarks.evidence import evidence  # noqa: E402
from tests.oracles.lower import lower as readable_lower  # noqa: E402
from tests.oracles.simulate import simulate as readable_simulate  # noqa: E402
from tests.oracles.verify import verify as readable_verify  # noqa: E402

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
    program = lower(schedule(name), shape)
    return program.num_actions, [
        seconds(lambda: lower(schedule(name), replace(shape)), times),
        seconds(lambda: check(program), times),
        seconds(lambda: simulate(program, DURATIONS), times),
    ]


def readable(name: str, shape: Shape) -> list[float]:
    program = []
    return [
        seconds(lambda: program.append(readable_lower(schedule(name), shape))),
        seconds(lambda: readable_verify(program[0])),
        seconds(lambda: readable_simulate(program[0], DURATIONS)),
    ]


def starts(name: str, shape: Shape) -> float:
    """Of a rank: the program, verified, and its own part of it."""
    return seconds(lambda: check(lower(schedule(name), shape)).actions(POSITIONS // 2), 3)


def main(largest: int) -> None:
    """Rows as they are measured, then the table of docs/evidence/simulator.md."""
    page = evidence("simulator", "bench_pipeline")
    head = "schedule", "actions", "lower", "verify", "simulate", "seconds", "actions/s", "start"
    print("{:12} {:>11} {:>8} {:>8} {:>9} {:>8} {:>11} {:>8} {:>7}".format(*head, "ratio"))
    sizes = range(3, largest + 1)
    rows = [[name, *(measured(name, exponent) for exponent in sizes)] for name in CASES]
    titles = ["about 1e3", *(f"1e{exponent}" for exponent in sizes[1:])]
    page.table("speed", [f"schedule, {POSITIONS} pipeline ranks", *titles], rows)


def measured(name: str, exponent: int) -> str:
    """Million actions per second, and how many times as fast as the readable one."""
    shape = shape_of(CASES[name], 10**exponent)
    actions, parts = fast(name, shape, max(1, 10 ** (6 - exponent)))
    total = sum(parts)
    slow = sum(readable(name, shape)) if actions <= READABLE_UP_TO else None
    ratio = f"{slow / total:6.1f}x" if slow else ""
    times = "{:8.4f} {:8.4f} {:9.4f}".format(*parts)
    rate, start = f"{actions / total:11,.0f}", f"{starts(name, shape):8.4f}"
    print(f"{name:12} {actions:11,} {times} {total:8.4f} {rate} {start} {ratio}", flush=True)
    return f"{actions / total / 1e6:.2f}" + (f" ({slow / total:.0f}x)" if slow else "")


if __name__ == "__main__":
    main(int(next((one for one in sys.argv[1:] if one.isdigit()), 7)))
