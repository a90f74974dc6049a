"""Faults made on purpose, several times each, with the seconds that they cost: `make soak`.

python tests/soak/faults.py [--database postgresql] [--times 5] [FAULT ...]
"""

import argparse
import signal
import sys
import traceback
from collections.abc import Sequence

from backend.errors import StageflowError
from backend.storage.soundness import violations
from tests.soak import on_homes as homes
from tests.soak import on_machines as machines
from tests.soak import on_processes as processes
from tests.soak import on_services as services
from tests.soak import on_visitors as visitors
from tests.soak.fault import Curve, Fault, Figures, story, undisturbed
from tests.soak.site import Site, site

TWO = ("a", "b")
FAULTS = {
    "agent": Fault(
        processes.agent_killed, {"no rank alive": 1.0, "first new step": 14.0}, agents=TWO
    ),
    "rank-of-2": Fault(processes.rank_killed(2), {"first new step": 8.0}),
    "rank-of-4": Fault(processes.rank_killed(4), {"first new step": 15.0}, ranks=4),
    "paused": Fault(processes.agent_paused, {}, agents=TWO),
    "redis-gone": Fault(services.redis_gone, {"submit": 2.0}),
    "redis-wiped": Fault(services.redis_wiped, {}),
    "messages": Fault(services.messages_doubled, {}, agents=TWO),
    "database-restarted": Fault(services.restarted, {}),
    "database-away": Fault(services.away(60.0), {"ranks end": 6.0}),
    "database-caught-up": Fault(services.caught_up(60.0), {}, lease=200.0),
    "checkpoint": Fault(processes.checkpoint_killed, {}, times=50),
    "cancel": Fault(processes.cancelled, {"no process left": 3.0}),
    "cancel-anywhere": Fault(
        processes.cancelled_anywhere,
        dict.fromkeys(("queued", "starting", "with ranks", "running", "saving"), 3.0),
    ),
    "dashboard": Fault(processes.dashboard_killed, {"page back": 5.0}),
    "disk": Fault(services.disk_full, {}),
    "clocks": Fault(services.clocks_apart, {}),
    "names": Fault(processes.same_name, {}),
    "launcher": Fault(machines.launcher_killed, {"no process left": 3.0}),
    "descriptors": Fault(machines.descriptors_used_up, {}),
    "backup": Fault(machines.backed_up, {}),
    "move": Fault(homes.moved, {}),
    "redis-clock": Fault(homes.redis_clock_set, {}),
    "claims": Fault(homes.restarted_in_claims, {}, agents=TWO, lease=30.0),
    "up-twice": Fault(homes.up_twice, {}, ranks=1),
    "sign-ins": Fault(visitors.sign_ins, {"MB more": 300.0, "healthz": 5.0}, agents=()),
    "upload": Fault(visitors.large_upload, {"MB more": 500.0, "healthz": 5.0}, agents=()),
    "slow-clients": Fault(visitors.slow_clients, {"healthz": 5.0, "let go": 60.0}, agents=()),
    "stalled": Fault(homes.stalled(60.0), {}),
}


def several_times(name: str, database: str, times: int) -> bool:
    """Make one fault in a site of its own; True where everything held and every bar is met."""
    fault = FAULTS[name]
    with site(database, fault.lease) as there:
        for node in fault.agents:
            there.start(node)
        found, held = [], True
        curve = undisturbed(there, there.spec(fault.ranks)) if fault.agents else []
        for _ in range(times):
            figures = _made(fault, there, curve)
            held = held and figures is not None
            found += [] if figures is None else [figures]
        print(f"{database:10} {name:18} {len(found)} of {times} times as it must", flush=True)
        whats = dict.fromkeys(what for figures in found for what in figures)
        met = [_bar(fault, what, found) for what in whats]
        broken = violations(there.backend.database, there.settings)
        if broken:
            print(f"{'':29} doctor --deep: {broken}", flush=True)
        return held and all(met) and not broken


def _made(fault: Fault, there: Site, curve: Curve) -> Figures | None:
    try:
        return fault.make(there, curve)
    except (AssertionError, TimeoutError, StageflowError):
        traceback.print_exc()
        there.wake()
        for run in there.backend.runs.list(limit=2).runs:
            print(story(there, run.id), file=sys.stderr, flush=True)
        return None


def _bar(fault: Fault, what: str, found: Sequence[Figures]) -> bool:
    """Print the figures, and whether the bar is met."""
    figures = [one[what] for one in found if what in one]
    bar = fault.bars.get(what)
    verdict = "" if bar is None else f"bar {bar:g}: {'met' if max(figures) <= bar else 'NOT MET'}"
    shown = " ".join(f"{one:.2f}" for one in figures)
    print(f"{'':29} {what:15} {shown}   {verdict}", flush=True)
    return bar is None or max(figures) <= bar


def main() -> None:
    """Print the seconds of every time, and the bar; code 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", default=[], metavar="FAULT")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--times", type=int, help="instead of 5, and 50 for checkpoint")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the site is cleared away
    held = [
        several_times(name, asked.database, asked.times or FAULTS[name].times)
        for name in asked.faults or FAULTS
    ]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
