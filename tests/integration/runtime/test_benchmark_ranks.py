"""Ranks of the benchmarks end when they have said what they found."""

import json
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.all import HERE, SHORT

ROOT = Path(__file__).parents[3]
RANK = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from tests.benchmarks.ranks import end
threading.Thread(target=threading.Event().wait).start()
end([7] if sys.argv[2] == "0" else None)
"""


def test_a_rank_ends_though_a_thread_of_it_waits_for_ever(tmp_path: Path) -> None:
    """As gloo's did, which torch's reducer joined while holding the lock that they waited for."""
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    for number, said in (("0", [[7]]), ("1", [])):
        command = [sys.executable, str(script), str(ROOT), number]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert [json.loads(line) for line in done.stdout.splitlines()] == said


def test_every_benchmark_that_has_a_small_size_is_there() -> None:
    there = {file.stem.removeprefix("bench_") for file in HERE.glob("bench_*.py")}
    assert SHORT.keys() <= there
