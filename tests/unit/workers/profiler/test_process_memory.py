"""Memory as the kernel counts it, in a process that allocates known amounts."""

import subprocess
import sys

import pytest

MIB = 2**20
PROGRAM = """
import torch
from workers.profiler.process_memory import private_bytes, unused_bytes
from workers.runtime.process import keep_freed_memory
keep_freed_memory()
cpu = torch.device("cpu")
def touch():
    return torch.ones(64 << 18)
touch()
before = private_bytes()
kept = touch()
held = private_bytes() - before
print(held, unused_bytes(touch, 64 << 20, cpu), unused_bytes(touch, 24 << 20, cpu))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel's /proc")
def test_what_is_kept_counts_and_what_is_beside_the_living_is_unused() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    held, nothing, rest = map(int, told.stdout.split())
    assert held == pytest.approx(64 * MIB, abs=2 * MIB)
    assert nothing < 2 * MIB
    assert rest == pytest.approx(40 * MIB, abs=2 * MIB)
