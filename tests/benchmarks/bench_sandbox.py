"""What the sandbox costs a run: with and without it, alternating, in one run.

    python -m tests.benchmarks.bench_sandbox [pairs, 10] [model, vgg_digits] [epochs, 3] [job]

On a quiet machine; `--write` puts the table into docs/evidence/sandbox.md. `job` is train (two
real ranks over gloo) or profile (one, and `epochs` are repetitions). "plain" are bare processes,
"bubblewrap" the cell with its limits and the agent's watch over them. Both start a session per
rank, because Linux shares a busy machine out by sessions. Not collected by pytest.

work       seconds from the first to the last minibatch, as the ranks tell them; of a profile
           from the first to the last repetition, as they are heard
CPU        seconds of the ranks and of the agent that watches them, which a busy machine
           changes less
whole      seconds from the start of the processes to their end
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO

import psutil

from backend.codec import to_json
from backend.definitions.zoo import zoo_file
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.placement import world_size
from backend.runs.events import Metrics, Progress, RankError, read_line
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from backend.sandbox_level import SandboxLevel
from backend.settings import Settings
from tests.benchmarks.evidence import evidence
from tests.ports import free_port
from workers.sandbox.cell import Cell, LaunchRequest
from workers.sandbox.guard import Guard
from workers.sandbox.limits import Limits
from workers.supervisor.ranks.environment import rank_environment
from workers.supervisor.ranks.place import Place
from workers.supervisor.setup.preparation import job_file, rank_command, room_of
from workers.supervisor.supervision import TICK

CUT = 8
HEAD = ["seconds", "plain", "bubblewrap", "ratio, median", "least", "most"]
WORDS = {
    "work": "of training or of the repetitions",
    "cpu": "of CPU, of the ranks and the agent's watch",
    "whole": "from start to end",
}
LAYERS = {"vgg_digits": 20, "mlp": 8}
LIMITS = Limits.of(Settings())


@dataclass(frozen=True)
class Taken:
    work: float
    cpu: float
    whole: float


def asked(model: str, epochs: int, job: str) -> RunSpec:
    if job == "profile":
        return ProfileSpec(1, 16, epochs)
    stages = (Stage(0, CUT, (0,)), Stage(CUT, LAYERS[model], (1,)))
    return TrainSpec(1, Plan("even", Partition(stages), "pipedream", 16), epochs=epochs)


def prepared(home: Path, model: str, spec: RunSpec) -> Job:
    folder = home / "runs" / "1" / "attempt-1"
    (folder / "definition").mkdir(parents=True)
    (folder / "work").mkdir()
    source = folder / "definition" / f"{model}.py"
    source.write_bytes(zoo_file(model).read_bytes())
    job = Job(1, 1, model, spec, str(source), str(folder / "work"), world_size(spec))
    job_file(job).write_bytes(to_json(Job, job))
    return job


class Clock:
    """CPU seconds of this process and of the living ones below some, up to the last look."""

    def __init__(self) -> None:
        self._begun = self._own()
        self._seen: dict[int, float] = {}

    def look(self, pids: list[int]) -> None:
        with suppress(psutil.Error):
            for top in map(psutil.Process, pids):
                for process in (top, *top.children(recursive=True)):
                    times = process.cpu_times()
                    self._seen[process.pid] = times.user + times.system

    def seconds(self) -> float:
        return self._own() - self._begun + sum(self._seen.values())

    @staticmethod
    def _own() -> float:
        return time.process_time()


class Reader:
    """The times of the minibatches, from what the ranks tell; the rest is for nobody."""

    def __init__(self, pipes: list[IO[str]]) -> None:
        self.times: list[float] = []
        self.other: list[str] = []
        self._threads = [threading.Thread(target=self._read, args=(pipe,)) for pipe in pipes]
        for thread in self._threads:
            thread.start()

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                event = read_line(line.rstrip("\n"))
                if isinstance(event, Metrics) and event.name == "loss":
                    self.times += event.times
                elif isinstance(event, Progress) and event.phase == "layers":
                    self.times.append(time.time())
                elif event is None or isinstance(event, RankError):
                    self.other.append(line)

    def work(self) -> float:
        for thread in self._threads:
            thread.join()
        if not self.times:
            sys.exit("".join(self.other))
        return max(self.times) - min(self.times)


def environments(job: Job, wrapped: bool) -> list[dict[str, str]]:
    port = free_port()
    work, size = Path(job.folder), job.world_size
    place = Place((*range(size),), (*range(size),), port)
    return [rank_environment(r, place, size, work, wrapped=wrapped) for r in range(size)]


def plain(job: Job, clock: Clock) -> Reader:
    command = list(rank_command(job))
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    ranks = [
        subprocess.Popen(
            command, env=env, cwd=job.folder, text=True, start_new_session=True, **pipes
        )
        for env in environments(job, wrapped=False)
    ]
    reader = Reader([pipe for rank in ranks for pipe in (rank.stdout, rank.stderr) if pipe])
    while living := [rank.pid for rank in ranks if rank.poll() is None]:
        clock.look(living)
        time.sleep(TICK)
    return reader


def wrapped(job: Job, clock: Clock) -> Reader:
    room = room_of(job, Settings(home=job_file(job).parents[3]))
    order = LaunchRequest(tuple(rank_command(job)), tuple(environments(job, wrapped=True)), LIMITS)
    cell = Cell(room, order, SandboxLevel.BUBBLEWRAP)
    reader = Reader([*cell.outputs, *cell.events])
    guard = Guard(LIMITS, cell.pid, room.work)
    while len(cell.exits()) < job.world_size:
        assert guard.error(time.monotonic()) is None
        clock.look([cell.pid])
        time.sleep(TICK)
    cell.end()
    return reader


def taken(start, model: str, spec: RunSpec) -> Taken:
    with tempfile.TemporaryDirectory() as home:
        job = prepared(Path(home), model, spec)
        begun, clock = time.perf_counter(), Clock()
        reader = start(job, clock)
        whole = time.perf_counter() - begun
        return Taken(reader.work(), clock.seconds(), whole)


def main() -> None:
    page = evidence("sandbox", "bench_sandbox")
    given = (*sys.argv[1:], *("10", "vgg_digits", "3", "train")[len(sys.argv) - 1 :])
    pairs, model, epochs, kind = given
    spec = asked(model, int(epochs), kind)
    taken(plain, model, asked(model, 2, kind))
    found: list[tuple[Taken, Taken]] = []
    for number in range(int(pairs)):
        order = (plain, wrapped) if number % 2 == 0 else (wrapped, plain)
        both = {start: taken(start, model, spec) for start in order}
        found.append((both[plain], both[wrapped]))
    load = os.getloadavg()[0]
    print(f"{kind} {model}, {epochs}, {pairs} pairs, {os.cpu_count()} cores, load {load:.1f}")
    page.table(kind, HEAD, (row(name, found) for name in WORDS))


def row(name: str, found: list[tuple[Taken, Taken]]) -> list[str]:
    without, inside = ([getattr(pair[n], name) for pair in found] for n in (0, 1))
    ratios = [b / a for a, b in zip(without, inside, strict=True)]
    seconds = (f"{median(without):.2f}", f"{median(inside):.2f}")
    return [WORDS[name], *seconds, *(f"{of(ratios):.3f}" for of in (median, min, max))]


if __name__ == "__main__":
    main()
