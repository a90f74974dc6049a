"""Chaos from a seed: short runs on three agents while everything fails that can.

python tests/soak/chaos.py [--seed 1] [--runs 200] [--minutes 10] [--database postgresql]
"""

import argparse
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import psutil

from backend.queue.client import redis_client
from backend.queue.messages import QueueUnreachable
from backend.runs.attempts.checkpoints import FAULTS
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.storage.backup.archive import back_up
from backend.storage.errors import DatabaseUnreachable
from backend.storage.soundness import violations
from tests.soak.fault import Curve, story, told_once, undisturbed
from tests.soak.on_machines import few_descriptors
from tests.soak.site import Site, site

AGENTS = ("a", "b", "c")


class Chaos:
    """What happens next is drawn from the seed; when, depends on the machine too."""

    def __init__(self, there: Site, seed: int) -> None:
        self._there = there
        self._draw = random.Random(seed)
        self.happened: Counter[str] = Counter()
        self.cancelled: set[int] = set()
        self.short: set[int] = set()
        """Runs on an agent that could open no more files: they may end by any reason."""
        self._paused: dict[str, float] = {}

    def happen(self) -> None:
        """One fault; what was paused for long enough is woken."""
        for node, until in list(self._paused.items()):
            if time.monotonic() > until:
                self._there.signal(node, signal.SIGCONT)
                del self._paused[node]
        weights = {
            self.rank_killed: 6,
            self.agent_killed: 2,
            self.agent_paused: 2,
            self.agent_stopped: 1,
            self.cancelled_one: 3,
            self.redis_killed: 1,
            self.redis_wiped: 1,
            self.messages_again: 3,
            self.database_gone: 1,
            self.launcher_killed: 3,
            self.descriptors_used_up: 1,
            self.redis_clock_set: 1,
            self.backed_up: 1,
        }
        (fault,) = self._draw.choices(list(weights), list(weights.values()))
        self.happened[fault.__name__] += 1
        fault()

    def settle(self) -> None:
        """Everything is there again."""
        for node in list(self._paused):
            self._there.signal(node, signal.SIGCONT)

    def rank_killed(self) -> None:
        live = self._live()
        ranks = self._there.ranks(self._draw.choice(live).id) if live else []
        if ranks:
            with suppress(psutil.Error):
                self._draw.choice(ranks).kill()

    def agent_killed(self) -> None:
        self._replaced(signal.SIGKILL)

    def agent_stopped(self) -> None:
        self._replaced(signal.SIGTERM)

    def agent_paused(self) -> None:
        """For up to two leases."""
        node = self._draw.choice(AGENTS)
        self._there.signal(node, signal.SIGSTOP)
        self._paused[node] = time.monotonic() + self._draw.uniform(0.5, 12.0)

    def cancelled_one(self) -> None:
        live = self._live()
        if live:
            run = self._draw.choice(live)
            self.cancelled.add(run.id)
            self._there.backend.runs.cancel(run.id)

    def redis_killed(self) -> None:
        pid = self._there.redis.pid()
        if pid is not None:
            psutil.Process(pid).kill()
        time.sleep(self._draw.uniform(0.0, 3.0))
        self._there.redis.start()

    def redis_wiped(self) -> None:
        with redis_client(self._there.settings) as client:
            client.flushall()

    def messages_again(self) -> None:
        for run in self._live():
            with suppress(QueueUnreachable):
                self._there.backend.queue.publish(run.id, self._draw.choice(AGENTS))

    def database_gone(self) -> None:
        self._there.database.stop()
        time.sleep(self._draw.uniform(0.0, 8.0))
        self._there.database.start()

    def launcher_killed(self) -> None:
        launchers = self._there.launchers()
        if launchers:
            with suppress(psutil.Error):
                self._draw.choice(launchers).kill()

    def descriptors_used_up(self) -> None:
        """For up to three seconds."""
        node = self._draw.choice(AGENTS)
        over = {run.id for run in self._runs() if run.state.is_final}
        with suppress(psutil.Error), few_descriptors(self._there.agents[node].pid):
            time.sleep(self._draw.uniform(0.5, 3.0))
            here = (run.id for run in self._runs() if run.node == node)
            self.short.update(set(here) - over)

    def redis_clock_set(self) -> None:
        """An hour forward or back, or right again."""
        self._there.redis.set_clock(self._draw.choice((-3600, 0, 3600)))

    def backed_up(self) -> None:
        target = self._there.settings.home / "backup.zip"
        back_up(self._there.settings, target, "chaos")
        target.unlink()

    def _replaced(self, number: signal.Signals) -> None:
        node = self._draw.choice(AGENTS)
        self._paused.pop(node, None)
        self._there.signal(node, number)
        self._there.end(node)
        self._there.start(node)

    def _live(self) -> list[Run]:
        return [run for run in self._runs() if run.state.is_live]

    def _runs(self) -> Sequence[Run]:
        return self._there.backend.runs.list(limit=500).runs


def faults_of(there: Site, run: Run, chaos: Chaos, curves: dict[int, Curve]) -> str:
    """What is wrong with the end of a run; "" where nothing is."""
    ranks = run.spec.plan.partition.num_devices
    match run.state:
        case RunState.SUCCEEDED:
            told_once(there, run.id)
            return "" if there.curve(run.id) == curves[ranks] else "its losses are other ones"
        case RunState.CANCELLED:
            return "" if run.id in chaos.cancelled else "nobody cancelled it"
        case RunState.FAILED:
            kind = run.error.kind if run.error else "nothing"
            expected = kind in FAULTS or run.id in chaos.cancelled | chaos.short
            return "" if expected else f"it failed by {kind}"
        case _:
            return f"it is {run.state.value}"


def main() -> None:
    """Print what happened and how the runs ended; code 1 where one ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the site is cleared away
    with site(asked.database) as there:
        for node in AGENTS:
            there.start(node)
        sys.exit(0 if _held(there, asked) else 1)


def _held(there: Site, asked: argparse.Namespace) -> bool:
    specs = {ranks: there.spec(ranks, epochs=1, updates=10) for ranks in (1, 2)}
    submit = there.backend.runs.submit
    curves = {ranks: undisturbed(there, spec) for ranks, spec in specs.items()}
    ids = [submit(specs[1 + (number % 4 == 3)]).id for number in range(asked.runs)]
    chaos, started = Chaos(there, asked.seed), time.monotonic()
    pause = random.Random(asked.seed)
    while time.monotonic() - started < 60 * asked.minutes:
        with suppress(DatabaseUnreachable):
            chaos.happen()
        time.sleep(pause.uniform(0.5, 4.0))
        with suppress(DatabaseUnreachable):
            if all(run.state.is_final for run in there.backend.runs.several(ids)):
                break
    chaos.settle()
    minutes = (time.monotonic() - started) / 60
    ended = [there.final(run_id, seconds=3600) for run_id in ids]
    wrong = [(run.id, fault) for run in ended if (fault := faults_of(there, run, chaos, curves))]
    broken = violations(there.backend.database, there.settings)
    print(f"{asked.database}, seed {asked.seed}: {len(ids)} runs, {minutes:.1f} minutes of chaos")
    print("  runs on agents that had no descriptors left:", len(chaos.short))
    print("  happened:", dict(chaos.happened))
    print("  ended:", dict(Counter(run.state.value for run in ended)))
    print("  attempts:", sum(run.attempt for run in ended))
    print("  failed by:", dict(Counter(run.error.kind for run in ended if run.error)))
    print(f"  wrong ends: {wrong or 'none'}; doctor --deep: {broken or 'every rule holds'}")
    for run_id, _ in wrong:
        print(story(there, run_id))
    return not wrong and not broken


if __name__ == "__main__":
    main()
