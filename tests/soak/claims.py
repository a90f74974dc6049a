"""3,000 deliveries of 1,000 runs to 8 processes: no run goes to two of them.

python tests/soak/claims.py [--database postgresql]
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator

from backend.bootstrap import connect
from backend.runs.request.spec import ProfileSpec
from tests.soak.site import ROOT, environment, site

NUM_RUNS, DELIVERIES, NUM_PROCESSES = 1_000, 3, 8


def deliver() -> None:
    """One process: wait for a line, claim what it is told to, print what it got."""
    backend = connect()
    backend.runs.count()
    print("ready", flush=True)
    for run_id in sys.stdin.readline().split():
        attempt = backend.dispatch.claim(int(run_id), "somebody")
        if attempt is not None:
            print(run_id, attempt.number)
    print("done", flush=True)


def heard(agent: "subprocess.Popen[str]") -> Iterator[str]:
    """What it claimed, up to its last delivery."""
    assert agent.stdout is not None
    for line in agent.stdout:
        if line == "done\n":
            return
        yield line.rstrip()


def main() -> None:
    """Print claims per second; ends with code 1 where a run was claimed twice or not at all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    asked = parser.parse_args()
    with site(asked.database) as there:
        definition = there.backend.definitions.add("tiny.py", b"def model(): ...\n")
        spec = ProfileSpec(definition.id)
        ids = [there.backend.runs.submit(spec).id for _ in range(NUM_RUNS)]
        messages = ids * DELIVERIES
        random.Random(0).shuffle(messages)
        agents = [
            subprocess.Popen(
                [sys.executable, "-c", "from tests.soak.claims import deliver; deliver()"],
                env=environment(there.settings),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(NUM_PROCESSES)
        ]
        for agent in agents:
            assert agent.stdout is not None
            assert agent.stdout.readline() == "ready\n"
        started = time.monotonic()
        for number, agent in enumerate(agents):
            assert agent.stdin is not None
            agent.stdin.write(" ".join(map(str, messages[number::NUM_PROCESSES])) + "\n")
            agent.stdin.flush()
        claimed = [line for agent in agents for line in heard(agent)]
        seconds = time.monotonic() - started
        for agent in agents:
            agent.wait()
        print(
            f"{asked.database}: {len(messages)} deliveries, {len(claimed)} claims of "
            f"{NUM_RUNS} runs in {seconds:.2f} s: {len(claimed) / seconds:.0f} claims/s"
        )
        if sorted(claimed) != sorted(f"{run_id} 1" for run_id in ids):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
