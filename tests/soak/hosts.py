"""Cancel a run on two hosts, again and again: seconds until it has ended and nothing is left.

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    if not may_make_networks():
        sys.exit("no right to make network namespaces here")
    with TemporaryDirectory(prefix="stageflow-hosts-") as folder:
        hosts = Hosts(Path(folder), 2)
        try:
            hosts.start()
            found = [cancelled(hosts) for _ in range(times)]
        finally:
            hosts.close()
    print("cancelled on two hosts, in seconds:", *(f"{each:.2f}" for each in found), f"(bar {BAR})")
    sys.exit(max(found) > BAR)


if __name__ == "__main__":
    main()
