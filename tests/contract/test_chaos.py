"""Agents that claim, report, die, lose their lease and come too late, in any order: what must hold
of every database holds, and nobody but the holder of a run changes anything of it.

The short form of `tests/soak/chaos.py`, which does it to processes.
"""

import random
from dataclasses import dataclass

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.attempts.fence import LeaseLost
from backend.runs.events import Metrics
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.services.runs.dispatch import DispatchService
from backend.services.runs.stores import Stores
from backend.storage.soundness import digest, violations

NUM_RUNS, NUM_STEPS = 6, 150
LEASE = 3600.0
"""Seconds: on a machine that has no time for the test, too, leases end when it says so."""
ONE = Plan("one", Partition((Stage(0, 1, (0,)),)), "gpipe", 4)
KILLED = RunError("RankKilled", "rank 0 was killed by signal 9")


@dataclass
class Holder:
    """An attempt, and how far its agent believes to be."""

    attempt: Attempt
    batch: int = 0
    step: int = 0


class Chaos:
    def __init__(self, backend: Backend, stores: Stores, spec: TrainSpec, seed: int) -> None:
        self.backend, self.stores = backend, stores
        self.draw = random.Random(seed)
        self.agents = [
            DispatchService(stores, backend.queue, backend.notifier, LEASE, name) for name in "abc"
        ]
        self.ids = [backend.runs.submit(spec).id for _ in range(NUM_RUNS)]
        self.spec = spec
        self.holders: list[Holder] = []

    def happen(self) -> None:
        self.draw.choices(
            (self.claim, self.tell, self.keep, self.lapse, self.reap, self.cancel, self.end),
            (8, 8, 6, 4, 4, 1, 2),
        )[0]()
        live = [run for run in self.backend.runs.several(self.ids) if not run.state.is_final]
        if len(live) < NUM_RUNS:
            self.ids.append(self.backend.runs.submit(self.spec).id)

    def claim(self) -> None:
        waiting = self.backend.dispatch.waiting_for("a")
        run_id = self.draw.choice(waiting or self.ids) if self.draw.random() < 0.8 else self.ids[0]
        agent = self.draw.choice(self.agents)
        attempt = agent.claim(run_id, self.draw.choice("abc"))
        if attempt is not None:
            attempt.running()
            for checkpoint in attempt.beginnings()[:1]:
                attempt.resumed(checkpoint)
            step = attempt.beginnings()[0].mark.step if attempt.beginnings() else 0
            if not step:
                attempt.begun_anew()
            self.holders.append(Holder(attempt, step=step))

    def tell(self) -> None:
        """A loss and a line; the answer may be lost, so that they come again."""
        if holder := self.any():
            loss = Metrics("loss", (holder.step,), (1.0,), (0.0,))
            for _ in range(self.draw.choice((1, 1, 2))):
                self.fenced(holder, lambda: holder.attempt.metrics(loss, holder.batch + 1))
                self.fenced(
                    holder, lambda: holder.attempt.logs([(0, 0.0, "line")], holder.batch + 2)
                )
            holder.batch, holder.step = holder.batch + 2, holder.step + 1

    def keep(self) -> None:
        holder = self.any()
        if holder is None or not holder.step:
            return
        folder = holder.attempt.checkpoint_folder(holder.step)
        if folder.exists():
            return
        folder.mkdir(parents=True)
        (folder / "stage-0").write_bytes(b"12345")
        files = [CheckpointFile("stage-0", 5, digest(folder / "stage-0") or "")]
        mark = Mark(0, holder.step * 4, holder.step)
        holder.batch += 1
        self.fenced(holder, lambda: holder.attempt.checkpoint(mark, files, 2, holder.batch))

    def lapse(self) -> None:
        """An agent is silent for longer than its lease."""
        if holder := self.any():
            self.fenced(holder, lambda: self.stores.runs.beat(holder.attempt.fence, -1.0))

    def reap(self) -> None:
        for agent in self.agents:
            agent.expire()
        if self.draw.random() < 0.3:
            self.draw.choice(self.agents).leave("a")

    def cancel(self) -> None:
        self.backend.runs.cancel(self.draw.choice(self.ids))

    def end(self) -> None:
        if holder := self.any():
            state = self.draw.choice((RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED))
            error = KILLED if state is RunState.FAILED else None
            self.fenced(holder, lambda: holder.attempt.finish(state, RunSummary(), error))

    def any(self) -> Holder | None:
        """Mostly one that holds its run, sometimes one that comes too late."""
        runs = {run.id: run for run in self.backend.runs.several(self.ids)}
        holding = [holder for holder in self.holders if _holds(holder, runs[holder.attempt.run.id])]
        if holding and self.draw.random() < 0.8:
            return self.draw.choice(holding)
        return self.draw.choice(self.holders) if self.holders else None

    def holds(self, holder: Holder) -> bool:
        return _holds(holder, self.backend.runs.get(holder.attempt.run.id))

    def fenced(self, holder: Holder, write) -> None:
        """It goes well for the one that holds the run, and for nobody else."""
        if self.holds(holder):
            write()
            return
        run = self.backend.runs.get(holder.attempt.run.id)
        with pytest.raises(LeaseLost):
            write()
        assert self.backend.runs.get(run.id) == run


def _holds(holder: Holder, run: Run) -> bool:
    return run.state.is_live and run.attempt == holder.attempt.number


@pytest.mark.parametrize("seed", range(2))
def test_invariants_hold_whatever_happens(
    backend: Backend, stores: Stores, definition: Definition, seed: int
):
    settings = backend.settings.model_copy(update={"lease": LEASE})
    chaos = Chaos(backend, stores, TrainSpec(definition.id, ONE), seed)
    for number in range(NUM_STEPS):
        chaos.happen()
        if number % 30 == 0:
            assert violations(backend.database, settings) == []
    assert violations(backend.database, settings) == []
    assert sum(run.attempt > 1 for run in backend.runs.list().runs) > 0
