"""Joules by made-up counters: no machine that was at hand has them."""

import sys
from math import isnan
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from workers.runtime.reports.energy_meter import EnergyMeter

CPU = torch.device("cpu")
RANGE = 262_143_328_850


def processor(root: Path, name: str, microjoules: int, most: int = RANGE) -> Path:
    folder = root / name
    folder.mkdir()
    (folder / "max_energy_range_uj").write_text(f"{most}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    return folder / "energy_uj"


def test_processors_are_summed_and_their_parts_are_not(tmp_path: Path) -> None:
    first = processor(tmp_path, "intel-rapl:0", 5_000_000)
    second = processor(tmp_path, "intel-rapl:1", 0)
    core = processor(tmp_path, "intel-rapl:0:0", 0)
    meter = EnergyMeter(CPU, tmp_path)
    assert meter.tells
    for file, microjoules in ((first, 7_500_000), (second, 1_000_000), (core, 900_000)):
        file.write_text(str(microjoules))
    assert meter.taken() == (3.5, 0.0)
    assert meter.taken() == (0.0, 0.0)


def test_a_counter_begins_again_above_its_range(tmp_path: Path) -> None:
    file = processor(tmp_path, "intel-rapl:0", 9_000_000, most=9_999_999)
    meter = EnergyMeter(CPU, tmp_path)
    file.write_text("500000")
    assert meter.taken() == (1.5, 0.0)


@pytest.mark.parametrize("text", ["", "none"])
def test_a_counter_that_cannot_be_read_does_not_tell(tmp_path: Path, text: str) -> None:
    processor(tmp_path, "intel-rapl:0", 1).write_text(text)
    assert not EnergyMeter(CPU, tmp_path).tells
    assert not EnergyMeter(CPU, tmp_path / "nothing").tells


def test_a_counter_that_is_lost_meanwhile_ends_nothing(tmp_path: Path) -> None:
    file = processor(tmp_path, "intel-rapl:0", 1)
    meter = EnergyMeter(CPU, tmp_path)
    file.unlink()
    assert isnan(meter.taken()[0])


def test_a_gpu_tells_by_its_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = iter((1_000, 1_000, 3_500))
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetTotalEnergyConsumption=lambda uuid: next(counted),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="one")
    )
    meter = EnergyMeter(torch.device("cuda"), tmp_path)
    assert meter.tells
    assert meter.taken() == (0.0, 0.0)
    assert meter.taken() == (0.0, 2.5)


def test_a_gpu_without_the_library_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert not EnergyMeter(torch.device("cuda"), tmp_path).tells
