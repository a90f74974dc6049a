"""A home with a database, a Redis and agents of several names, for faults made on purpose."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

import workers.zoo
from backend.bootstrap import Backend, connect
from backend.planning.plan import Partition, Plan, Stage
from backend.queue.presence import is_held
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from backend.runs.run import Run
from backend.settings import Settings
from backend.storage.errors import DatabaseUnreachable
from backend.storage.schema import upgrade
from tests.soak.clock import ShiftedRedis
from tests.soak.database_server import DatabaseServer, server_of
from workers.supervisor.ranks import processes

ROOT = Path(__file__).parents[2]
LEASE = 6.0


@dataclass
class Site:
    """`agents` by node name."""

    settings: Settings
    backend: Backend
    redis: ShiftedRedis
    database: DatabaseServer
    agents: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, node: str, **variables: str) -> None:
        """An agent of that name; returns when it takes runs."""
        named = self.settings.model_copy(update={"node": node})
        self.agents[node] = self.process("workers.agent", named, **variables)
        self.wait(lambda: is_held(named) and self._is_alive(node))

    def process(
        self, module: str, settings: Settings, *arguments: str, **variables: str
    ) -> "subprocess.Popen[bytes]":
        """A process of Stageflow with these settings; its output goes to <node>.log."""
        with (self.settings.home / f"{settings.node}.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=environment(settings) | variables,
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self, node: str) -> None:
        """Stop an agent, or see it off that is dead."""
        agent = self.agents.pop(node)
        agent.send_signal(signal.SIGCONT)
        agent.terminate()
        agent.wait()

    def wake(self) -> None:
        """Nobody is paused any more."""
        for node in self.agents:
            self.signal(node, signal.SIGCONT)

    def log(self, node: str) -> str:
        return (self.settings.home / f"{node}.log").read_text()

    def _is_alive(self, node: str) -> bool:
        return any(n.alive and n.name == node for n in self.backend.nodes.list())

    def agent_of(self, run_id: int) -> str:
        node = self.backend.runs.get(run_id).node
        assert node is not None
        return node

    def signal(self, node: str, number: signal.Signals) -> None:
        self.agents[node].send_signal(number)

    def wait(self, holds: Callable[[], object], seconds: float = 300) -> float:
        """Seconds until it held; a bound, not a measurement, is `seconds`."""
        started = time.monotonic()
        while not self._is_so(holds):
            if time.monotonic() - started > seconds:
                raise TimeoutError(f"not within {seconds:.0f} s: see {self.settings.home}")
            time.sleep(0.02)
        return time.monotonic() - started

    def _is_so(self, holds: Callable[[], object]) -> bool:
        """On a busy machine the database may end what this process asks in the middle."""
        with suppress(DatabaseUnreachable):
            return bool(holds())
        return False

    def final(self, run_id: int, seconds: float = 300) -> Run:
        self.wait(lambda: self.backend.runs.get(run_id).state.is_final, seconds)
        return self.backend.runs.get(run_id)

    def curve(self, run_id: int) -> list[tuple[int, float]]:
        return [
            (point.step, point.value) for point in self.backend.runs.metrics.list(run_id, "loss")
        ]

    def first_step_after(self, run_id: int, moment: float) -> float:
        """Seconds from `moment` (Unix) to the first loss that was computed later."""
        times = [point.time for point in self.backend.runs.metrics.list(run_id, "loss")]
        return min(time for time in times if time > moment) - moment

    def ranks(self, run_id: int) -> list[psutil.Process]:
        """The rank processes of the run's attempt."""
        found = []
        for process in self.living(run_id):
            with suppress(psutil.Error):
                line = process.cmdline()
                if "workers.runtime.main" in line and "launcher.py" not in " ".join(line):
                    found.append(process)
        return found

    def launchers(self) -> list[psutil.Process]:
        """Of all agents, and the bubblewraps around them."""
        found = []
        for agent in self.agents.values():
            with suppress(psutil.Error):
                children = psutil.Process(agent.pid).children(recursive=True)
                found += [p for p in children if "launcher.py" in " ".join(p.cmdline())]
        return found

    def living(self, run_id: int) -> list[psutil.Process]:
        run = self.backend.runs.get(run_id)
        return processes.of_attempt(self.settings.run_folder(run.id, run.attempt), ())

    def spec(self, ranks: int = 2, epochs: int = 6, updates: int = 10) -> TrainSpec:
        """Digits by 1F1B with a flush on so many ranks."""
        source = Path(workers.zoo.__file__).parent / "mlp.py"
        definition = self.backend.definitions.add("mlp.py", source.read_bytes())
        bounds = [place * 8 // ranks for place in range(ranks + 1)]
        stages = tuple(Stage(bounds[r], bounds[r + 1], (r,)) for r in range(ranks))
        return TrainSpec(
            definition.id,
            Plan("soak", Partition(stages), "1f1b-flush", 4, batch=4),
            data=DataSpec("digits"),
            optimizer=OptimizerSpec("adam", 0.002, decay="cosine"),
            epochs=epochs,
            checkpoints=CheckpointSpec(updates=updates, seconds=0),
        )

    def on_its_way(self, spec: TrainSpec) -> Run:
        """A run that has a checkpoint."""
        run = self.backend.runs.submit(spec)
        self.wait(lambda: self.backend.runs.checkpoints.list(run.id))
        return run


def environment(settings: Settings) -> dict[str, str]:
    """This process's with the settings spelled out."""
    fields = {f"STAGEFLOW_{k.upper()}": str(v) for k, v in settings.model_dump().items()}
    return os.environ | fields


@contextmanager
def site(
    database: str = "sqlite", lease: float = LEASE, place: Path | None = None
) -> Iterator[Site]:
    """In a folder below `place`. Everything is ended and removed with the block."""
    with (
        TemporaryDirectory(prefix="stageflow-soak-", dir=place) as folder,
        server_of(database, Path(folder) / "home", place) as server,
    ):
        settings = Settings(
            home=Path(folder) / "home",
            node="a",
            database_url=server.url,
            heartbeat=0.5,
            lease=lease,
        )
        upgrade(settings)
        redis = ShiftedRedis(settings)
        redis.start()
        found = Site(settings, connect(settings), redis, server)
        try:
            yield found
        finally:
            for node in list(found.agents):
                found.end(node)
            found.backend.close()
            redis.stop()
