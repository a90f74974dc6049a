"""Faults made on purpose, several times each, with the seconds that they cost: `make soak`.

python tests/soak/faults.py [--database postgresql] [--times 5] [FAULT ...]
"""

import argparse
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from backend.runs.states import RunState
from backend.storage.soundness import violations
from tests.soak.site import Site, site


@dataclass(frozen=True, slots=True)
class Fault:
    """`make` returns (name, seconds) pairs; `bars` are the most that they may be."""

    make: Callable[[Site, list[tuple[int, float]]], dict[str, float]]
    bars: dict[str, float]
    ranks: int = 2


Curve = list[tuple[int, float]]


def agent_killed(there: Site, undisturbed: Curve) -> dict[str, float]:
    """The other agent takes the run over when its lease is over."""
    run = there.on_its_way(there.spec())
    node, ranks = there.agent_of(run.id), there.ranks(run.id)
    moment = time.time()
    there.signal(node, signal.SIGKILL)
    gone = there.wait(lambda: not any(rank.is_running() for rank in ranks))
    _equal(there, run.id, undisturbed)
    there.agents[node].wait()
    there.start(node)
    return {"no rank alive": gone, "first new step": there.first_step_after(run.id, moment)}


def rank_killed(ranks: int) -> Callable[[Site, Curve], dict[str, float]]:
    def make(there: Site, undisturbed: Curve) -> dict[str, float]:
        run = there.on_its_way(there.spec(ranks))
        random.choice(there.ranks(run.id)).kill()
        moment = time.time()
        _equal(there, run.id, undisturbed)
        return {"first new step": there.first_step_after(run.id, moment)}

    return make


def agent_paused(there: Site, undisturbed: Curve) -> dict[str, float]:
    """Past its lease, then woken: the other one has the run, the woken one changes nothing."""
    run = there.on_its_way(there.spec())
    node, moment = there.agent_of(run.id), time.time()
    there.signal(node, signal.SIGSTOP)
    there.wait(lambda: there.backend.runs.get(run.id).attempt == 2)
    there.signal(node, signal.SIGCONT)
    _equal(there, run.id, undisturbed)
    assert len(there.backend.runs.attempts(run.id)) == 2
    return {"first new step": there.first_step_after(run.id, moment)}


def cancelled(there: Site, undisturbed: Curve) -> dict[str, float]:
    """Gone within the bar, with a checkpoint from which it goes on bit for bit."""
    run = there.on_its_way(there.spec())
    before = there.backend.runs.checkpoints(run.id)[0].id
    started = time.monotonic()
    there.backend.runs.cancel(run.id)
    there.wait(lambda: there.backend.runs.get(run.id).state.is_final)
    there.wait(lambda: not there.living(run.id))
    gone = time.monotonic() - started
    assert there.backend.runs.checkpoints(run.id)[0].id > before
    _equal(there, there.backend.runs.resume(run.id).id, undisturbed)
    return {"no process left": gone}


def checkpoint_killed(there: Site, undisturbed: Curve) -> dict[str, float]:
    """A checkpoint after every update, a rank killed at any moment: the newest is whole."""
    run = there.on_its_way(there.spec(updates=1))
    time.sleep(random.random())
    for rank in there.ranks(run.id)[:1]:
        rank.kill()
    moment = time.time()
    there.wait(lambda: there.backend.runs.get(run.id).attempt == 2)
    assert violations(there.backend.database, there.settings) == []
    _equal(there, run.id, undisturbed)
    return {"first new step": there.first_step_after(run.id, moment)}


FAULTS = {
    "agent": Fault(agent_killed, {"no rank alive": 1.0, "first new step": 14.0}),
    "rank-of-2": Fault(rank_killed(2), {"first new step": 8.0}),
    "rank-of-4": Fault(rank_killed(4), {"first new step": 15.0}, ranks=4),
    "paused": Fault(agent_paused, {"first new step": 14.0}),
    "cancel": Fault(cancelled, {"no process left": 3.0}),
    "checkpoint": Fault(checkpoint_killed, {}),
}


def _equal(there: Site, run_id: int, undisturbed: Curve) -> None:
    run = there.final(run_id)
    assert run.state is RunState.SUCCEEDED, run.error
    assert there.curve(run_id) == undisturbed, "the loss curve is another one"


def main() -> None:
    """Print a line per fault: the seconds of every time, and the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", default=[], metavar="FAULT")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with site(asked.database) as there:
        there.start("a")
        curves = {}
        for name in asked.faults or FAULTS:
            fault = FAULTS[name]
            if fault.ranks not in curves:
                run = there.final(there.backend.runs.submit(there.spec(fault.ranks)).id)
                curves[fault.ranks] = there.curve(run.id)
            if name in ("agent", "paused") and "b" not in there.agents:
                there.start("b")
            found = [fault.make(there, curves[fault.ranks]) for _ in range(asked.times)]
            for what in found[0]:
                figures = " ".join(f"{one[what]:.2f}" for one in found)
                bar = fault.bars.get(what)
                worst = max(one[what] for one in found)
                verdict = "" if bar is None else f"bar {bar:g}: {'met' if worst <= bar else 'NOT'}"
                print(f"{asked.database:10} {name:10} {what:15} {figures}   {verdict}", flush=True)
        broken = violations(there.backend.database, there.settings)
        print(f"doctor --deep: {broken or 'every rule holds'}")
        if broken:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
