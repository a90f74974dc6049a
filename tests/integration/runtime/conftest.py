"""Starts the real mains on jobs written into a folder."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

import workers.zoo
from backend.codec import to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.placement import world_size
from backend.runs.events import Event, read_line
from backend.runs.job import Job
from backend.runs.request.spec import DataSpec, OptimizerSpec, RunSpec, TrainSpec
from tests.integration.runtime import served as served_rank
from tests.integration.runtime.served import OVER

ROOT = Path(__file__).parents[3]
HEAD = "import torch\nfrom torch import nn\n"

WriteJob = Callable[..., Path]
Start = Callable[..., subprocess.Popen[str]]
Ended = Callable[..., tuple[list[int], list[Event], str]]


@pytest.fixture
def write_job(tmp_path: Path) -> WriteJob:
    """A job file for a zoo name or for a definition's text."""

    def write(model: str, spec: RunSpec, data: str = "", tokenizer: str = "") -> Path:
        file = Path(workers.zoo.__file__).parent / f"{model}.py"
        if "\n" in model:
            file = tmp_path / "mine.py"
            file.write_text(HEAD + model)
        size = world_size(spec)
        place = {"data": data, "tokenizer": tokenizer}
        job = Job(1, 1, "test", spec, str(file), str(tmp_path), size, **place)
        (tmp_path / "job.json").write_bytes(to_json(Job, job))
        return tmp_path / "job.json"

    return write


@pytest.fixture
def train_spec() -> Callable[..., TrainSpec]:
    """`bounds` are the first layers and the number of layers; each stage has `replicas`."""

    def spec(*bounds: int, schedule: str = "pipedream", rate: float = 0.05, **more) -> TrainSpec:
        replicas = more.pop("replicas", 1)
        stages = tuple(
            Stage(first, stop, tuple(range(i * replicas, (i + 1) * replicas)))
            for i, (first, stop) in enumerate(pairwise(bounds))
        )
        microbatch, batch = more.pop("microbatch", 16), more.pop("batch", 1)
        plan = Plan("test", Partition(stages), schedule, microbatch, batch)
        samples = more.pop("samples", 64)
        data = more.pop("data", DataSpec(samples=samples))
        return TrainSpec(1, plan, data=data, optimizer=OptimizerSpec("momentum", rate), **more)

    return spec


@pytest.fixture
def start() -> Start:
    """Start one process of a main; `world` is (rank, size, port)."""

    def begin(module: str, job: Path, world: tuple[int, int, int] | None = None):
        environment = dict(os.environ)
        if world:
            names = ("RANK", "WORLD_SIZE", "MASTER_PORT")
            environment |= dict(zip(names, map(str, world), strict=True))
            environment["MASTER_ADDR"] = "127.0.0.1"
        command = [sys.executable, "-m", module, str(job)]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


@pytest.fixture
def ended(start: Start) -> Ended:
    """Run a main on `size` ranks to its end: exit codes, events, all text."""

    def run(module: str, job: Path, size: int = 1) -> tuple[list[int], list[Event], str]:
        port = free_port()
        ranks = [start(module, job, (r, size, port) if size > 1 else None) for r in range(size)]
        texts = [process.communicate(timeout=280)[0] for process in ranks]
        lines = [line for text in texts for line in text.splitlines()]
        found = [event for line in lines if (event := read_line(line))]
        return [process.returncode for process in ranks], found, "".join(texts)

    return run


@pytest.fixture(scope="module")
def served() -> Iterator[Ended]:
    """As `ended`, for trainings, in processes that run job after job until one of them fails."""
    waiting: dict[int, list[subprocess.Popen[str]]] = {}

    def run(job: Path, size: int) -> tuple[list[int], list[Event], str]:
        ranks = waiting.pop(size, None) or _waiting(size)
        for process in ranks:
            assert process.stdin is not None
            process.stdin.write(f"{job}\n")
            process.stdin.flush()
        with ThreadPoolExecutor(size) as readers:
            texts = list(readers.map(_until_over, ranks))
        codes = [
            0 if text.endswith(f"{OVER}\n") else process.wait(timeout=280)
            for process, text in zip(ranks, texts, strict=True)
        ]
        if any(codes):
            _end(ranks)
        else:
            waiting[size] = ranks
        lines = [line for text in texts for line in text.splitlines()]
        return codes, [event for line in lines if (event := read_line(line))], "".join(texts)

    yield run
    for ranks in waiting.values():
        _end(ranks)


def _waiting(size: int) -> list[subprocess.Popen[str]]:
    port = free_port()
    world = {"WORLD_SIZE": str(size), "MASTER_PORT": str(port), "MASTER_ADDR": "127.0.0.1"}
    return [
        subprocess.Popen(
            [sys.executable, "-m", served_rank.__name__],
            cwd=ROOT,
            env={**os.environ, **world, "RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]


def _until_over(process: subprocess.Popen[str]) -> str:
    """What it says of a job."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == f"{OVER}\n":
            break
    return "".join(lines)


def _end(ranks: list[subprocess.Popen[str]]) -> None:
    for process in ranks:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
