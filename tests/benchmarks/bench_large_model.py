"""A language model that no rank ever holds whole: peak memory of each rank beside the prediction.

    python -m tests.benchmarks.bench_large_model [--width 2048] [--depth 24] [--ranks 4] [--write]

The plan is made from a profile that nothing was run for. The ranks are those of any training,
through `workers.runtime.main`, and their memory is what the kernel says of them: when training
begins, and at most. The base is the peak of the same run with a model of 30 kB.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import workers.zoo
from backend.cluster.presets import local
from backend.codec import to_json
from backend.prediction.answer import rank
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.runs.job import Job
from backend.runs.request.spec import (
    CheckpointSpec,
    DataSpec,
    OptimizerSpec,
    ProfileSpec,
    TrainSpec,
)
from tests.benchmarks.evidence import evidence
from workers.profiler.described import described

ROOT, MIB = Path(__file__).parents[2], 2**20
FILE = Path(workers.zoo.__file__).parent / "gpt2.py"
TOKENS, LENGTH, BATCH = 8192, 64, 4
TINY = {"width": 16, "depth": 4, "heads": 2, "tokens": 64, "length": 8, "context": 8}
HEAD = ["rank", "layers", "weights, MiB", "base", "predicted", "at the start", "at most", "ratio"]


def main() -> None:
    page = evidence("prediction", "bench_large_model")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--depth", type=int, default=24)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    given = parser.parse_args()
    sizes = {"width": given.width, "depth": given.depth, "heads": given.width // 64}
    sizes |= {"tokens": TOKENS, "length": LENGTH, "context": LENGTH}
    page.table("large model", HEAD, rows(sizes, given.ranks, given.epochs))


def rows(sizes: dict[str, int], ranks: int, epochs: int) -> Iterator[list[str]]:
    base = max(trained(planned(TINY, ranks), TINY, 1)[1])
    prediction = planned(sizes, ranks)
    starts, peaks, losses, seconds = trained(prediction, sizes, epochs)
    for number, stage in enumerate(prediction.plan.partition.stages):
        weights = sum(
            layer.parameter_bytes for layer in profile(sizes).layers[stage.first : stage.stop]
        )
        predicted = prediction.memory_bytes[number] / MIB + base
        yield [
            str(number),
            f"{stage.first} to {stage.stop - 1}",
            f"{weights / MIB:,.0f}",
            f"{base:,.0f}",
            f"{predicted:,.0f}",
            f"{starts[number]:,.0f}",
            f"{peaks[number]:,.0f}",
            f"{peaks[number] / predicted:.2f}",
        ]
    shown = ", ".join(f"{loss:.2f}" for loss in losses)
    print(f"losses {shown}; begun after {seconds:.0f} s", file=sys.stderr)


def profile(sizes: dict[str, int]):
    """Of blocks, by the roofline of some GPU; memory is all that is asked of it."""
    spec = ProfileSpec(1, 1, parameters=sizes, granularity="blocks", peak="v100")
    found = described("gpt2", FILE, spec)
    return replace(found, tracing="captured")


def planned(sizes: dict[str, int], ranks: int) -> Prediction:
    question = Question(profile(sizes), local(ranks), "gpipe-balanced", "1f1b-flush", BATCH)
    return rank(question)[0].prediction


def trained(
    prediction: Prediction, sizes: dict[str, int], epochs: int
) -> tuple[list[float], list[float], list[float], float]:
    """(MiB of each rank when its training begins, at most, the losses, seconds to the begin)."""
    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), len(prediction.plan.partition.stages)
        spec = TrainSpec(
            1,
            prediction.plan,
            data=DataSpec(samples=BATCH, held_out=0.0),
            optimizer=OptimizerSpec("momentum", 0.02),
            epochs=epochs,
            parameters=sizes,
            granularity="blocks",
            tracing="captured",
            checkpoints=CheckpointSpec(seconds=0.0),
        )
        job = Job(1, 1, "large", spec, str(FILE), name, size)
        (folder / "job.json").write_bytes(to_json(Job, job))
        started = time.monotonic()
        ranks = [
            _started(folder, number, size, port) for port in [_port()] for number in range(size)
        ]
        starts, peaks, begun = [0.0] * size, [0.0] * size, 0.0
        while any(process.poll() is None for process in ranks):
            for number, process in enumerate(ranks):
                peaks[number] = max(peaks[number], _peak(process.pid))
                if not starts[number] and '"started"' in _log(folder, number):
                    starts[number], begun = peaks[number], time.monotonic() - started
            time.sleep(0.1)
        logs = [_log(folder, number) for number in range(size)]
        ends = "\n".join(log[-2000:] for log in logs)
        assert not any(process.returncode for process in ranks), ends
        return starts, peaks, _losses("\n".join(logs)), begun


def _started(folder: Path, number: int, size: int, port: int) -> subprocess.Popen[bytes]:
    world = {"RANK": str(number), "WORLD_SIZE": str(size), "MASTER_PORT": str(port)}
    world |= {"MASTER_ADDR": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "workers.runtime.main", str(folder / "job.json")]
    log = (folder / f"log-{number}").open("wb")
    return subprocess.Popen(command, env=os.environ | world, stdout=log, stderr=subprocess.STDOUT)


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _log(folder: Path, number: int) -> str:
    return (folder / f"log-{number}").read_text(errors="replace")


def _peak(pid: int) -> float:
    """MiB that the process held at most; 0 where it is over."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def _losses(text: str) -> list[float]:
    lines = (json.loads(line) for line in text.splitlines() if '"name":"loss"' in line)
    return [value for line in lines for value in line["values"]]


if __name__ == "__main__":
    main()
