"""What a core reaches: rates that its own products and copies confirm."""

from pathlib import Path
from unittest.mock import patch

import torch

from workers.profiler import device_peaks
from workers.profiler.device_peaks import has_bfloat16


def test_rates_are_those_of_the_fastest_of_some_tries() -> None:
    """By a clock on which a product takes 1, 2, ... s, and so does each other thing."""
    ticks = iter(range(10**6))
    with (
        patch.object(device_peaks, "perf_counter", lambda: next(ticks)),
        patch.object(device_peaks, "has_bfloat16", lambda: False),
        patch.object(device_peaks, "NUMBERS", 1000),
        patch.object(device_peaks, "SIDE", 8),
    ):
        found = device_peaks.device_peaks()
    assert found.flops.float32 == 2 * 8**3
    assert found.flops.bfloat16 is None
    assert found.bandwidth == 8 * 1000
    assert found.launch == 1 / device_peaks.CALLS


def test_products_in_bfloat16_are_measured_where_the_processor_has_them(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    assert not has_bfloat16(told)
    told.write_text("flags : fpu avx2")
    assert not has_bfloat16(told)
    told.write_text("flags : fpu avx512_bf16 amx_tile")
    assert has_bfloat16(told)
    with (
        patch.object(device_peaks, "has_bfloat16", lambda: True),
        patch.object(device_peaks, "NUMBERS", 1000),
        patch.object(device_peaks, "SIDE", 8),
        patch.object(device_peaks, "CALLS", 2),
    ):
        found = device_peaks.device_peaks()
    assert found.flops.bfloat16
    assert torch.get_num_threads() >= 1
