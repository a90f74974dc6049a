"""The Celery side of a node agent: the app, its tasks, and its start and stop signals."""

import os
import threading
import time
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_shutting_down

from backend.bootstrap import connect
from backend.queue.client import celery_app
from backend.queue.messages import LOOK, RUN, queue_name
from backend.settings import Settings
from workers.node_agent import NodeAgent

LAST_WAY_OUT = 2.0
"""Seconds that Celery gets to leave once the agent's runs have ended: without its broker it
would go on trying to connect."""


def node_app(settings: Settings) -> tuple[Celery, NodeAgent]:
    """The worker app of this node, and the agent that it starts and stops, for which the
    caller waits at the end; raises what `connect` raises. Once the agent is stopped, this process
    ends, whatever Celery still does."""
    backend = connect(settings)
    backend.dispatch.go_by(settings.node)
    agent = NodeAgent(backend)
    app = celery_app(settings)
    _register(app, agent)

    def start(**_: Any) -> None:
        agent.start()

    def stop(**_: Any) -> None:
        """Celery waits for its tasks; this makes them end, and their ranks with them."""
        agent.stop()

    # From the first: a signal handler must start no thread, as that takes a lock.
    threading.Thread(target=_force_out, args=(agent,), daemon=True).start()

    worker_init.connect(start, weak=False)
    worker_shutting_down.connect(stop, weak=False)
    return app, agent


def _register(app: Celery, agent: NodeAgent) -> None:
    """Answer the messages of `backend.queue`: an id comes in, a call is made."""

    @app.task(name=RUN)  # type: ignore[untyped-decorator]  # celery has no types
    def run(run_id: int) -> None:  # whose turn it is the database says
        agent.look()

    @app.task(name=LOOK)  # type: ignore[untyped-decorator]  # celery has no types
    def look() -> None:
        agent.look_for_links()


def _force_out(agent: NodeAgent) -> None:
    agent.until_stopped()
    try:
        agent.join()
    finally:
        time.sleep(LAST_WAY_OUT)
        os._exit(0)


def worker_arguments(settings: Settings) -> list[str]:
    """One thread on the node's own queue; what another worker does is no concern of it."""
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    pool = ["-P", "threads", "-c", "1"]
    return [
        "worker",
        *pool,
        "-Q",
        queue_name(settings.node),
        "-n",
        f"agent@{settings.node}",
        "-l",
        "INFO",
        *quiet,
    ]
