"""What a machine has: GPUs as nvidia-smi tells them, else cores."""

import os
from pathlib import Path

import psutil
import pytest

from backend.cluster.cluster import Device
from workers import devices


def nvidia_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_table_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = "0, GPU-1f, Disabled, NVIDIA H200, 87, 3, 143771, 54, 112.4\n"
    table += "1, GPU-2e, [N/A], Tesla, V100, 0, 3, 16384, 31, [N/A]\n"
    nvidia_smi(tmp_path, f"echo '{table}'", monkeypatch)
    assert devices.devices(devices.gpus()) == (
        Device("NVIDIA H200", 143771 * 1024**2),
        Device("Tesla, V100", 16384 * 1024**2),
    )


def test_a_gpu_without_a_memory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nvidia_smi(
        tmp_path, "echo '0, GPU-1f, [N/A], NVIDIA GB10, [N/A], [N/A], [N/A], 40, 9.1'", monkeypatch
    )
    assert devices.devices(devices.gpus()) == (Device("NVIDIA GB10", None),)


def test_gpus_come_before_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nvidia_smi(
        tmp_path, "echo '0, GPU-1f, Disabled, NVIDIA L4, 12, 100, 23034, 60, 33.0'", monkeypatch
    )
    assert devices.devices(devices.gpus()) == (Device("NVIDIA L4", 23034 * 1024**2),)


def test_a_driver_that_fails_leaves_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nvidia_smi(tmp_path, "echo 'Failed to initialize NVML'; exit 9", monkeypatch)
    found = devices.devices(devices.gpus())
    assert len(found) == len(os.sched_getaffinity(0))
    assert sum(device.memory or 0 for device in found) <= psutil.virtual_memory().total


def test_versions_name_what_runs_depend_on():
    assert {"python", "torch", "celery"} <= set(devices.versions())
