"""A run on two hosts, again and again: it is cancelled, in seconds until it has ended and nothing
is left; a third host's agent has the name of one of them, and ends.

    PYTHONPATH=. python tests/soak/hosts.py [--times 5]

The hosts are network namespaces of this machine (as root); their agents report to one SQLite.
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.runs.states import RunState
from tests.integration.hosts.rig import Hosts, may_make_networks
from tests.integration.hosts.slow_training import UPDATES, curve, newest, training

BAR = 3.0
Curve = list[tuple[int, float]]


def cancelled(hosts: Hosts) -> float:
    """Well on its way, with a last checkpoint of both hosts."""
    run = hosts.backend.runs.submit(training(hosts))
    hosts.wait(lambda: len(curve(hosts, run.id)) > UPDATES // 4)
    begun = time.monotonic()
    hosts.backend.runs.cancel(run.id)
    ended = hosts.until_final(run.id)
    hosts.wait(lambda: not hosts.ranks_of(run.id))
    seconds = time.monotonic() - begun
    assert ended.state is RunState.CANCELLED, ended
    assert newest(hosts, run.id)
    return seconds


def same_name(hosts: Hosts, undisturbed: Curve) -> None:
    """The third host's agent says whose its name is, and ends; the run has its losses."""
    run = hosts.backend.runs.submit(training(hosts))
    hosts.wait(lambda: len(curve(hosts, run.id)) > UPDATES // 4)
    first, _, third = hosts.names
    before = len(hosts.log(third))
    hosts.begin(third, node=first)
    assert hosts.left(third) == 1
    told = hosts.log(third)[before:]
    assert f"the name {first} belongs to the agent of" in told, told
    assert "STAGEFLOW_NODE" in told, told
    assert hosts.until_final(run.id).state is RunState.SUCCEEDED
    assert curve(hosts, run.id) == undisturbed
    assert len(hosts.backend.runs.attempts(run.id)) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    if not may_make_networks():
        sys.exit("no right to make network namespaces here")
    with TemporaryDirectory(prefix="stageflow-hosts-") as folder:
        hosts = Hosts(Path(folder), 3)
        try:
            for name in hosts.names[:2]:
                hosts.begin(name)
            hosts.wait(lambda: len(hosts.alive) == 2)
            found = [cancelled(hosts) for _ in range(times)]
            undisturbed = curve(hosts, hosts.finished(training(hosts)).id)
            for _ in range(times):
                same_name(hosts, undisturbed)
        finally:
            hosts.close()
    print("cancelled on two hosts, in seconds:", *(f"{each:.2f}" for each in found), f"(bar {BAR})")
    print(f"a third host with the name of one of them: {times} of {times} times as it must")
    sys.exit(max(found) > BAR)


if __name__ == "__main__":
    main()
