"""A pool over an engine, in this process: its jobs' agents are processes of their own."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from backend.bootstrap import Backend, connect
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.pools.pool import Pool, PoolJob
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, PoolSpec, RunSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.settings import Settings
from tests.integration.hosts.slow_training import BATCH, MICROBATCH, MODEL
from tests.migrated import migrated
from workers.pool_agent import AGENT, rounds
from workers.pools.engine import Engine
from workers.pools.submitter import Submitter
from workers.stop import Flag

UPDATES = 60
PAUSE = 0.01
"""Seconds per microbatch: something can happen in the middle of a run, and others have the cores
meanwhile."""
SLOWLY = 0.05
"""Seconds per microbatch of an attempt that something is to happen to, however busy the machine."""
PACED = (
    MODEL.replace(b"sleep(0.004)", b"sleep(pause())")
    + b"""
def pause():
    import os
    pauses = %s
    own = [each for k, each in enumerate(pauses, 1) if f"attempt-{k}" in os.environ["HOME"]]
    return (*own, pauses[-1])[0]
"""
)
"""A run whose attempts have a pace of their own each."""
ROUND = 0.3
"""Seconds between two looks at the cluster."""


class PoolRig:
    """`engine` is made with the settings; `close` ends every job."""

    def __init__(self, home: Path, engine: Callable[[Settings], Engine], lease: float = 6) -> None:
        self.settings = Settings(home=home, node="login", heartbeat=0.5, lease=lease)
        migrated(self.settings)
        self.backend: Backend = connect(self.settings)
        self.engine = engine(self.settings)
        self.command: Sequence[str] = AGENT
        self._over = Flag()
        self._rounds: threading.Thread | None = None

    def begin(self) -> None:
        """Whoever submits jobs begins, or another one does after `halt`; they know the pool."""
        self._over = Flag()
        self._rounds = threading.Thread(target=self._loop, daemon=True)
        self._rounds.start()
        self.wait(self.backend.pools.list)

    def pool(self) -> Pool:
        """As pages show it."""
        return self.backend.pools.list()[0]

    def halt(self) -> None:
        """Nobody submits any more; jobs go on."""
        self._over.set()
        if self._rounds is not None:
            self._rounds.join()

    def close(self) -> None:
        self.halt()
        for name in self.engine.look():
            self.engine.end(name)
        self.wait(lambda: not self.agents())
        self.backend.close()

    def _loop(self) -> None:
        submitter = Submitter(self.backend, self.engine, "gpu", "test", self.command)
        rounds(submitter, self.backend, ROUND, self._over)

    def training(
        self,
        machines: int,
        updates: int = UPDATES,
        pauses: Sequence[float] = (PAUSE,),
        **changes: object,
    ) -> TrainSpec:
        """One epoch of so many updates in two stages, on one or two machines of the pool. `pauses`
        in seconds per microbatch: of the first attempt, the second one ..., and the last of all
        that follow."""
        definition = self.backend.definitions.add("slow.py", PACED % repr(tuple(pauses)).encode())
        stages = (Stage(0, 2, (0,)), Stage(2, 4, (1,)))
        fields = {
            "data": DataSpec("synthetic", MICROBATCH * BATCH * updates),
            "optimizer": OptimizerSpec("adam", 0.003, decay="cosine"),
            "epochs": 1,
            "checkpoints": CheckpointSpec(seconds=0),
            "pool": PoolSpec("gpu", machines),
        }
        plan = Plan("even", Partition(stages), "1f1b-flush", MICROBATCH, batch=BATCH)
        return TrainSpec(definition.id, plan, **(fields | changes))

    def submit(self, spec: RunSpec) -> Run:
        return self.backend.runs.submit(spec)

    def curve(self, run_id: int) -> list[tuple[int, float]]:
        """Every update's loss."""
        return [
            (point.step, point.value) for point in self.backend.runs.metrics.list(run_id, "loss")
        ]

    def jobs(self, run_id: int) -> Sequence[PoolJob]:
        return self.backend.pools.jobs([run_id]).get(run_id, ())

    def agents(self, run_id: int | None = None) -> list[psutil.Process]:
        """The processes of agents for that run, or for any."""
        wanted = ["workers.run_agent"] if run_id is None else ["workers.run_agent", str(run_id)]
        found = []
        for process in psutil.process_iter(["cmdline", "environ"]):
            words = process.info["cmdline"] or []
            mine = str(self.settings.home) in str(process.info["environ"])
            if mine and words[2 : 2 + len(wanted)] == wanted and "-m" in words:
                found.append(process)
        return found

    def wait(self, until: Callable[[], object], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.05)

    def told(self) -> str:
        """What a person would ask for who sees that nothing more happens."""
        lines = [f"{name}: {seen}" for name, seen in self.engine.look().items()]
        for run in self.backend.runs.list().runs:
            attempts = self.backend.runs.attempts(run.id)
            lines += [f"{run.id}: {run.state} {run.error}, {len(self.curve(run.id))} updates"]
            lines += [f"{run.id}, {each}" for each in attempts]
            lines += [f"{run.id}, {job}" for job in self.jobs(run.id)]
        return "\n".join(lines)

    def goes_on(self, run_id: int, attempt: int) -> None:
        """Until that attempt has learned something."""
        self.wait(lambda: self.backend.runs.get(run_id).attempt == attempt)
        self.wait(lambda: self.backend.runs.get(run_id).state is RunState.RUNNING)
        before = len(self.curve(run_id))
        self.wait(lambda: len(self.curve(run_id)) > before)

    def until_final(self, run_id: int) -> Run:
        self.wait(lambda: self.backend.runs.get(run_id).state.is_final)
        return self.backend.runs.get(run_id)


def power_off(process: psutil.Process) -> None:
    """An agent and all that it started, at once and without a word."""
    for each in (*process.children(recursive=True), process):
        with suppress(psutil.NoSuchProcess):
            each.kill()
