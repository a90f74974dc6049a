"""Traces built after the documented format of torch.profiler, for what no test machine has."""

import json
from typing import Any

Row = dict[str, Any]


def row(name: str, category: str, start: float, took: float, thread: int = 1, **facts: Any) -> Row:
    """A complete event; `start` and `took` in microseconds."""
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 7,
        "tid": thread,
        "ts": start,
        "dur": took,
        "args": facts,
    }


def file(*rows: Row, rank: int | None = None, **top: Any) -> bytes:
    body: dict[str, Any] = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": [*rows]}
    if rank is not None:
        body["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    return json.dumps(body | top).encode()


def launched(number: int, start: float, at: float, took: float, thread: int = 1) -> list[Row]:
    """A launch at `start`, and its kernel, which runs from `at` on stream 9."""
    return [
        row("cudaLaunchKernel", "cuda_runtime", start, 1.0, thread, correlation=number),
        row("gemm", "kernel", at, took, 9, correlation=number, stream=9),
    ]


def evaluated(sequence: int, start: float, took: float) -> Row:
    name = "autograd::engine::evaluate_function: AddmmBackward0"
    facts = {"Sequence number": sequence, "Fwd thread id": 1}
    return row(name, "cpu_op", start, took, 2, **facts)


def on_a_gpu() -> bytes:
    """Two layers, one microbatch: the processor is quick, the kernels take 100 and 200 us, and
    300 and 400 in the backward, which another thread launches."""
    forward = {"Fwd thread id": 0}
    gathered = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    return file(
        row("layer first 4000", "user_annotation", 0, 10),
        row("aten::addmm", "cpu_op", 1, 8, **forward, **{"Sequence number": 5}),
        *launched(1, 2, 50, 100),
        row("output first 256", "user_annotation", 11, 1),
        row("layer second 400", "user_annotation", 20, 10),
        row("aten::addmm", "cpu_op", 21, 8, **forward, **{"Sequence number": 6}),
        *launched(2, 22, 150, 200),
        row("output second 128", "user_annotation", 31, 1),
        evaluated(6, 40, 10),
        *launched(3, 41, 350, 300, thread=2),
        evaluated(5, 60, 10),
        *launched(4, 61, 650, 390, thread=2),
        row(gathered, "cpu_op", 71, 5, 2),
        *launched(5, 72, 1040, 10, thread=2),
        deviceProperties=[{"name": "NVIDIA H100"}],
    )
