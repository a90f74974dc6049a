"""What the queue may ask of an agent: an id comes in, a call is made, done."""

from celery import Celery

from backend.queue.messages import LOOK, RUN
from workers.node_agent import NodeAgent


def register(app: Celery, agent: NodeAgent) -> None:
    """Answer the messages of `backend.queue` with `agent`."""

    @app.task(name=RUN)  # type: ignore[untyped-decorator]  # celery has no types
    def run(run_id: int) -> None:
        agent.run(run_id)

    @app.task(name=LOOK)  # type: ignore[untyped-decorator]  # celery has no types
    def look() -> None:
        agent.look_for_links()
