"""A part of a machine: some of its GPUs, cores and memory."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Use
from workers.allocation import VISIBLE, allowed, memory
from workers.use import Gpu

FOUR = tuple(Gpu(n, f"GPU-{n}a{n}b", False, Use("H100")) for n in range(4))
GIB = 2**30


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("2,3", [2, 3]),
        ("3, 1", [3, 1]),
        ("GPU-2a2b,0", [2, 0]),
        ("GPU-1a", [1]),
        ("1,9,2", [1]),
        ("-1,0", []),
        ("NoDevFiles", []),
        ("1,1", [1]),
    ],
)
def test_the_variable_says_which_and_in_what_order(visible: str | None, numbers: list[int]):
    variables = {} if visible is None else {VISIBLE: visible}
    assert [gpu.index for gpu in allowed(FOUR, variables)] == numbers


def test_slices_are_left_out_and_refused_by_name(caplog: pytest.LogCaptureFixture):
    cut = (FOUR[0], Gpu(1, "GPU-cut", True, Use("A100")))
    assert [gpu.index for gpu in allowed(cut, {})] == [0]
    assert "GPU 1 (A100) is cut into MIG slices" in caplog.text
    for named in ("0,1", "GPU-cut", "MIG-4f2"):
        with pytest.raises(InvalidInput, match="ranks use whole GPUs") as refusal:
            allowed(cut, {VISIBLE: named})
        assert "nvidia-smi" in refusal.value.advice


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/a/b\n", {"a/memory.max": "max", "a/b/memory.max": str(GIB)}, GIB),
        ("0::/a/b\n", {"a/memory.max": str(GIB), "a/b/memory.max": "max"}, GIB),
        ("0::/\n", {}, None),
        ("5:cpu:/a\n4:memory:/job\n", {"memory/job/memory.limit_in_bytes": str(GIB)}, GIB),
        ("4:memory:/job\n", {"memory/job/memory.limit_in_bytes": str(2**63 - 4096)}, None),
    ],
)
def test_control_groups_limit_memory(
    tmp_path: Path, lines: str, files: dict[str, str], expected: int | None
):
    """Version 2, where the limit may be an outer group's, and version 1."""
    (tmp_path / "own").write_text(lines)
    for name, text in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(text)
    found = memory({}, tmp_path / "groups", tmp_path / "own")
    assert found == (expected or psutil.virtual_memory().total)


def test_slurm_says_the_memory_of_its_job(tmp_path: Path):
    nowhere = tmp_path / "none"
    assert memory({"SLURM_MEM_PER_NODE": "1024"}, nowhere, nowhere) == GIB
    for text in ("", "0", "all"):
        whole = memory({"SLURM_MEM_PER_NODE": text}, nowhere, nowhere)
        assert whole == psutil.virtual_memory().total


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_cores_are_those_of_the_affinity():
    program = "from workers.devices import cores; print(len(cores()))"
    one = {min(os.sched_getaffinity(0))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        preexec_fn=lambda: os.sched_setaffinity(0, one),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
