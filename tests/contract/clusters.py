"""What the tests of engines ask of a cluster, whichever it is."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from backend.runs.pools.job import JobOrder, JobState, Seen
from tests.slurm import wait
from workers.pools.engine import Engine

AGENT = """\
import os, pathlib, signal, sys, time
notes = pathlib.Path(sys.argv[1])
def told(number, frame):
    (notes / f"{signal.Signals(number).name}-{os.getpid()}").touch()
    sys.exit()
signal.signal(signal.SIGTERM, told)
signal.signal(signal.SIGUSR1, told)
(notes / f"began-{os.getpid()}").touch()
time.sleep(120)
"""
"""Notes that it began and which signal it was told, and obeys."""
_NUMBERS = count()


Made = Callable[[], Engine]
MACHINES = 2
DEVICES = 4
"""Of each."""


@dataclass(frozen=True)
class Ways:
    """What `Engine` leaves open to a kind of cluster.

    warning   the signal by which it warns
    outputs   how many agents of a job it tells the output of
    refuses   what no machine has; otherwise such a job waits
    foretells why a job waits without room, and when one would start
    """

    warning: str = "SIGUSR1"
    outputs: int = MACHINES
    refuses: bool = True
    foretells: bool = True


@dataclass(frozen=True)
class Cluster:
    """`made` gives an engine, as a process that was just started has it. `notes`: a folder that
    agents reach."""

    made: Made
    notes: Path
    ways: Ways = Ways()

    def order(
        self,
        *command: str,
        nodes: int = 1,
        devices: int = 1,
        seconds: float = 0,
        warning: float = 9,
    ) -> JobOrder:
        """Of an agent that waits to be told, where no `command` is given."""
        command = command or (sys.executable, "-ISc", AGENT, str(self.notes))
        name = f"stageflow-{self.notes.name}-{next(_NUMBERS)}"
        return JobOrder(name, 12, nodes, devices, command, seconds, warning)

    def all(self) -> JobOrder:
        """Of one that takes all that there is."""
        return self.order(nodes=MACHINES, devices=DEVICES)

    def seen(self, order: JobOrder) -> Seen:
        return self.made().look()[order.name]

    def state(self, order: JobOrder) -> JobState:
        """Who is not named is gone."""
        seen = self.made().look().get(order.name)
        return seen.state if seen else JobState.GONE

    def until(self, state: JobState, order: JobOrder) -> None:
        wait(lambda: self.state(order) is state, lambda: self.made().output(order.name))

    def began(self) -> int:
        """Agents."""
        return self.noted("began")

    def noted(self, word: str) -> int:
        return len(list(self.notes.glob(f"{word}-*")))

    def clear(self) -> None:
        """All jobs away."""
        for name, seen in self.made().look().items():
            if seen.state is not JobState.GONE:
                self.made().end(name)
        wait(lambda: all(seen.state is JobState.GONE for seen in self.made().look().values()))

    def run(self, order: JobOrder) -> str:
        """Submit it and wait until its agents have begun; its id."""
        before = self.began()
        job = self.made().submit(order)
        wait(lambda: self.made().look() and self.began() == before + order.nodes)
        return job
