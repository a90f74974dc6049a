"""What the cores of this machine reach: `python -m workers.profiler.device_peaks` writes the record
of one of them as JSON, for a cluster's file."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

from backend.cluster.device_record import DeviceRecord, FlopRates
from backend.codec import to_json
from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

SIDE = 1024
"""Rows and columns of the products: three such matrices are more than a core's own caches hold."""
NUMBERS = 32_000_000
"""Of a tensor that is copied, in float32: too large for any cache."""
TRIES, CALLS = 5, 1000
FLAGS = {"avx512_bf16", "amx_bf16"}
"""What Linux calls a processor's instructions for products in bfloat16."""
PROCESSOR = Path("/proc/cpuinfo")


def main() -> int:
    """Exit code 0 once the record is written."""
    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    sys.stdout.buffer.write(to_json(DeviceRecord, device_peaks()))
    return 0


def device_peaks() -> DeviceRecord:
    """The fastest of some products of matrices, of some copies and of calls of a layer that hardly
    computes, on as many cores as torch may use. Products in bfloat16 are left out where the
    processor has no instructions for them."""
    source, to = torch.rand(NUMBERS), torch.empty(NUMBERS)
    copy = _least(lambda: to.copy_(source))
    in_bfloat16 = _product(torch.bfloat16) if has_bfloat16() else None
    return DeviceRecord(
        FlopRates(float32=_product(torch.float32), bfloat16=in_bfloat16),
        bandwidth=2 * source.element_size() * NUMBERS / copy,
        launch=_launch(),
    )


def has_bfloat16(processor: Path = PROCESSOR) -> bool:
    """Whether the processor that Linux describes there multiplies in bfloat16; not where nothing
    is described."""
    return processor.is_file() and bool(FLAGS & set(processor.read_text().split()))


def _product(kind: torch.dtype) -> float:
    """Operations/s."""
    a, b = (torch.rand(SIDE, SIDE).to(kind) for _ in range(2))
    return 2 * SIDE**3 / _least(lambda: torch.mm(a, b))


def _launch() -> float:
    """Seconds of a layer's forward beside its work, as a training calls it."""
    layer, sample = nn.Linear(1, 1), torch.ones(1, 1)

    def calls() -> None:
        for _ in range(CALLS):
            layer(sample)

    return _least(calls) / CALLS


def _least(work: Callable[[], object]) -> float:
    """Seconds of the fastest of some tries, after one that warms up."""
    found = []
    for _ in range(1 + TRIES):
        start = perf_counter()
        work()
        found.append(perf_counter() - start)
    return min(found[1:])


if __name__ == "__main__":
    sys.exit(main())
