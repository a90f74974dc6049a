"""An agent that carries one attempt of one run, and ends: `python -m workers.run_agent 12`.

It needs the database and no Redis. A cluster's job starts one on each of its machines.
"""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from backend.bootstrap import Backend, connect
from backend.errors import StageflowError
from backend.runs.dispatch.leases import NodeTaken
from backend.runs.pools.agents import agent_name
from backend.runs.pools.job import WARNING
from backend.runs.run import Run
from backend.settings import Settings, load_settings
from backend.storage.errors import DatabaseUnreachable
from workers.address import own_address
from workers.links.participant import Participant
from workers.node_agent import NodeAgent
from workers.stop import Flag

PLACES = ("STAGEFLOW_PLACE", "SLURM_PROCID", "JOB_COMPLETION_INDEX")
"""Variables of which the first that is there is this machine's number in its job."""
LOOK = 0.5
PATIENCE = 300.0
"""Seconds in which the agents of all the job's machines must have come."""
GRACE = 25.0
"""Seconds between the SIGTERM of a cluster and its SIGKILL, less some: Slurm's default is 30."""

log = logging.getLogger("stageflow")


def settings_for(settings: Settings, run_id: int, place: int, home: Path) -> Settings:
    """A home and a name of its own, on the database and the shared folder of all."""
    return settings.model_copy(
        update={
            "node": agent_name(run_id, place),
            "home": home,
            "shared": str(settings.shared_folder),
            "database_url": settings.sql_url,
        }
    )


def is_over(run: Run, held: bool) -> bool:
    """Whether the run needs this agent no longer: it ended, or others carry it. `held`: its
    current attempt holds devices of this node."""
    return run.state.is_final or (run.state.is_live and not held)


def carry(agent: NodeAgent, backend: Backend, run_id: int) -> int:
    """Wait for the run's attempt and its end; 1 where it cannot begin."""
    deadline = time.monotonic() + PATIENCE
    node = backend.settings.node
    agent.start()
    while not (agent.has_ended or agent.is_near_its_end):
        with suppress(DatabaseUnreachable):
            run = backend.runs.get(run_id)
            held = bool(backend.dispatch.devices(run_id, run.attempt, node))
            if not agent.has_begun and is_over(run, held):
                log.info("run %d is %s: it needs no agent here", run_id, run.state.value)
                break
        if not agent.has_begun and time.monotonic() > deadline:
            log.error("run %d was not begun within %.0f s", run_id, PATIENCE)
            return 1
        time.sleep(LOOK)
    return 0


def take_name(backend: Backend) -> None:
    """Wait until the agent that had the name before is surely gone. Raises `NodeTaken` after two
    leases."""
    deadline = time.monotonic() + 2 * backend.settings.lease
    while True:
        try:
            return backend.dispatch.go_by(backend.settings.node)
        except NodeTaken:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK)


def measure(backend: Backend, test_id: int, place: int) -> int:
    """Take part in a test of links as that machine of its job, until it is over."""
    stopped = Flag()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda *_: stopped.set())
    test = backend.links.tests.get(test_id)
    address = own_address(backend.settings.node_address)
    member = test.members[place].node
    Participant(backend.links, test, member, address, lambda: not stopped.is_set()).play()
    return 0


def main(arguments: list[str] | None = None) -> int:
    """0 once the attempt is over, however it ended, or somebody else carries the run; 1 where the
    agent could not do its work."""
    given = _arguments(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    home = Path(tempfile.mkdtemp(prefix=f"stageflow-{agent_name(given.run_id, given.place)}-"))
    try:
        settings = settings_for(load_settings(), given.run_id, given.place, home)
        backend = connect(settings)
        if given.links:
            with closing(backend):
                return measure(backend, given.run_id, given.place)
        backend.runs.get(given.run_id)
        take_name(backend)
        agent = NodeAgent(backend, given.run_id)
        signal.signal(signal.SIGUSR1, lambda *_: agent.warn(given.warning))
        signal.signal(signal.SIGTERM, lambda *_: agent.warn(given.grace))
        signal.signal(signal.SIGINT, lambda *_: agent.stop())
        try:
            return carry(agent, backend, given.run_id)
        finally:
            agent.join()
            agent.stop()
            backend.close()
    except StageflowError as fault:
        print(f"{fault}\n{fault.advice}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_id", type=int)
    parser.add_argument("--links", action="store_true", help="it is the number of a test of links")
    named = (os.environ[name] for name in PLACES if os.environ.get(name, "").isdecimal())
    parser.add_argument("--place", type=int, default=int(next(named, "0")))
    parser.add_argument("--warning", type=float, default=WARNING, help="seconds after a SIGUSR1")
    parser.add_argument("--grace", type=float, default=GRACE, help="seconds after a SIGTERM")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
