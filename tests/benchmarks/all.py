"""Every benchmark in turn, with the seconds that each took.

    python -m tests.benchmarks.all [--long [--write]] [NAME ...]

By default each runs in a size that shows its table within a few minutes; all of them took 18
minutes on 2 cores where nothing else worked. `--long` gives each its own size, with which the
tables in docs/evidence were made (hours); `--write` also writes those that know how. A
benchmark that fails is named at the end, and the others run.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

from tests.benchmarks.evidence import WRITE

HERE = Path(__file__).parent
RACED = "ddp,torch 1f1b,1f1b-flush,zb-h1,2bw,pipedream"
SHORT: dict[str, tuple[tuple[str, ...], ...]] = {
    "by_parts": (("--depth", "4", "--repetitions", "1"),),
    "every_placement": (("120", "4", "8"),),
    "every_plan": (("vgg16", "resnet50", "A", "8x8"),),
    "emulated": (("--models", "vgg16,gnmt_large", "--seconds", "6"),),
    "first_answer": (("--servers", "4,9"),),
    "large_model": (("--width", "512", "--depth", "8", "--epochs", "2"),),
    "history": (("--runs", "10000", "--database", "sqlite"),),
    "parallel_pipelines": (("--epochs", "1"),),
    "memory": (("--schedules", "1f1b-flush,2bw,pipedream"),),
    "pages": (("--runs", "10000", "--database", "sqlite"),),
    "pipeline": (("6",),),
    "profiles": (("4",),),
    "runtime": (
        ("--models", "vgg", "--networks", "loopback,1gbit,100mbit", "--contestants", RACED),
        ("--models", "lstm,transformer", "--networks", "loopback", "--contestants", RACED),
    ),
    "choices": (("--models", "lstm", "--networks", "100mbit", "--ranks", "2", "--rounds", "2"),),
    "codecs": (
        ("--networks", "100mbit", "--models", "lstm", "--schedules", "2bw", "--rounds", "1"),
    ),
    "local_losses": (
        ("--network", "loopback", "--models", "vgg_digits", "--stages", "2", "--epochs", "1"),
    ),
    "local_heads": (("--models", "vgg_digits"),),
    "bytes": (("--models", "recommender", "--epochs", "1"),),
    "run_ahead": (("--networks", "100mbit", "--models", "lstm", "--rounds", "1"),),
    "sandbox": (("3", "vgg_digits", "2"),),
    "sessions": (("--seconds", "15"),),
    "slow_ranks": (("--rounds", "1"),),
    "splits": (("--networks", "loopback", "--models", "wide", "--rounds", "1"),),
}
"""Arguments of each run of a benchmark; those that are not named run as they are."""
WRITERS = {
    *("big_models", "by_parts", "bytes", "edit", "large_model", "memory", "overhead"),
    *("every_placement", "every_plan", "pipeline", "planner", "profiles", "roofline", "sandbox"),
    *("codecs", "local_losses", "prediction", "run_ahead", "shared_node", "shares", "synthesised"),
    *("bubbles", "choices", "first_answer", "local_heads", "slow_ranks", "splits", "timeline"),
}
"""Those that write their tables into docs/evidence (`evidence.py`)."""


def main() -> int:
    """The number of benchmarks that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument(WRITE, action="store_true")
    parser.add_argument("names", nargs="*", help="only these")
    given = parser.parse_args()
    if given.write and not given.long:
        parser.error(f"{WRITE} is of tables in full: add --long")
    known = sorted(file.stem.removeprefix("bench_") for file in HERE.glob("bench_*.py"))
    begun, failed = perf_counter(), []
    for name in given.names or known:
        start, runs = perf_counter(), SHORT.get(name, ((),))
        if given.long:
            runs = ((WRITE,) if given.write and name in WRITERS else (),)
        print(f"\n== {name}", flush=True)
        if not ran(name, runs):
            failed.append(name)
        print(f"-- {name}: {perf_counter() - start:.0f} s", flush=True)
    print(
        f"\n{perf_counter() - begun:.0f} s in all", *(f"{name} failed" for name in failed), sep=", "
    )
    return len(failed)


def ran(name: str, runs: Iterable[tuple[str, ...]]) -> bool:
    """Run a benchmark with each of these arguments; whether all of them ended well."""
    module = [sys.executable, "-m", f"tests.benchmarks.bench_{name}"]
    codes = [subprocess.run([*module, *arguments]).returncode for arguments in runs]
    return not any(codes)


if __name__ == "__main__":
    sys.exit(main())
