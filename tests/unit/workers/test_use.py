"""Use of a machine: its own, and that of its GPUs as nvidia-smi tells it."""

import os
from pathlib import Path

import psutil
import pytest

from backend.runs.use import Use
from workers import use

MIB = 1024**2


def test_a_table_of_gpus():
    table = """0, GPU-1f, Enabled, NVIDIA H200, 87, 70123, 143771, 54, 312.45
1, GPU-2e, [N/A], Tesla, V100, 0, 3, 16384, 31, [N/A]

"""
    assert use.parse(table) == (
        use.Gpu(
            0,
            "GPU-1f",
            True,
            Use("NVIDIA H200", 0.87, 70123 * MIB, 143771 * MIB, 54.0, watts=312.45),
        ),
        use.Gpu(1, "GPU-2e", False, Use("Tesla, V100", 0.0, 3 * MIB, 16384 * MIB, 31.0)),
    )


def test_what_a_driver_does_not_tell_is_not_known():
    (gpu,) = use.parse("0, GPU-1f, [N/A], NVIDIA GB10, [N/A], [N/A], [N/A], 40, [N/A]\n")
    assert gpu.use == Use("NVIDIA GB10", celsius=40)


def nvidia_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_the_machine_comes_before_its_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nvidia_smi(
        tmp_path, "echo '0, GPU-1f, Disabled, NVIDIA L4, 12, 100, 23034, 60, 33.1'", monkeypatch
    )
    meter = use.NodeUseMeter()
    machine, gpu = meter({"GPU-1f"})
    assert machine.name == "machine"
    assert machine.share is not None
    assert 0 <= machine.share <= 1
    assert machine.sent is not None
    assert machine.received is not None
    assert machine.memory is not None
    assert 0 < machine.memory <= psutil.virtual_memory().total == machine.total
    assert gpu == Use("NVIDIA L4", 0.12, 100 * MIB, 23034 * MIB, 60.0, watts=33.1)
    assert len(meter({"GPU-another"})) == 1


def test_a_driver_that_fails_leaves_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nvidia_smi(tmp_path, "echo 'Failed to initialize NVML'; exit 9", monkeypatch)
    assert [one.name for one in use.NodeUseMeter()({"GPU-1f"})] == ["machine"]
