"""Starts the real mains on jobs written into a folder."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

import workers.zoo
from backend.codec import from_json, to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.placement import world_size
from backend.runs.events import Event, Saved, read_line
from backend.runs.job import Job
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, RunSpec, TrainSpec
from tests.forked import Forked
from tests.ports import free_port

RUNTIME = "workers.runtime.main"
HEAD = "import torch\nfrom torch import nn\n"

WriteJob = Callable[..., Path]
Ended = Callable[..., tuple[list[int], list[Event], str]]
Went = Callable[..., list[Event]]


def job_file(folder: Path, model: str, spec: RunSpec, data: str = "", tokenizer: str = "") -> Path:
    """A job in the folder for a zoo name or for a definition's text."""
    file = Path(workers.zoo.__file__).parent / f"{model}.py"
    if "\n" in model:
        file = folder / "mine.py"
        file.write_text(HEAD + model)
    size = world_size(spec)
    place = {"data": data, "tokenizer": tokenizer}
    job = Job(1, 1, "test", spec, str(file), str(folder), size, **place)
    (folder / "job.json").write_bytes(to_json(Job, job))
    return folder / "job.json"


def spec_of(*bounds: int, schedule: str = "pipedream", rate: float = 0.05, **more) -> TrainSpec:
    """`bounds` are the first layers and the number of layers; each stage has `replicas`."""
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


@pytest.fixture
def write_job(tmp_path: Path) -> WriteJob:
    """`job_file` in the test's folder."""
    return partial(job_file, tmp_path)


@pytest.fixture
def train_spec() -> Callable[..., TrainSpec]:
    """`spec_of`."""
    return spec_of


@pytest.fixture
def ended() -> Ended:
    """Run a main on `size` ranks to its end: exit codes, events, all text."""

    def run(job: Path, size: int = 1, module: str = RUNTIME) -> tuple[list[int], list[Event], str]:
        port = free_port()
        worlds = [_world(rank, size, port) if size > 1 else {} for rank in range(size)]
        ranks = [Forked(module, str(job), env=dict(os.environ) | world) for world in worlds]
        codes = [rank.wait(280) for rank in ranks]
        text = "".join(rank.out.read_text() + rank.err.read_text() for rank in ranks)
        return codes, [event for line in text.splitlines() if (event := read_line(line))], text

    return run


@pytest.fixture
def went_on(write_job: WriteJob, ended: Ended) -> Went:
    """What the ranks of a training said that ended well; they go on from a checkpoint where one is
    given."""

    def run(
        model: str, spec: TrainSpec, begin: Saved | None = None, main: str = RUNTIME
    ) -> list[Event]:
        file = write_job(model, spec)
        job: Job = from_json(Job, file.read_bytes())
        if begin is not None:
            folder = str(Path(begin.path).parent)
            job = replace(job, checkpoint=folder, epoch=begin.epoch, samples=begin.samples)
        file.write_bytes(to_json(Job, job))
        codes, found, text = ended(file, world_size(spec), main)
        assert set(codes) == {0}, text
        return found

    return run


def _world(rank: int, size: int, port: int) -> dict[str, str]:
    names = ("RANK", "WORLD_SIZE", "MASTER_PORT")
    return dict(zip(names, map(str, (rank, size, port)), strict=True)) | {
        "MASTER_ADDR": "127.0.0.1"
    }
