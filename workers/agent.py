"""Start the node agent of this machine: `python -m workers.agent`."""

import signal
import sys

from backend.errors import StageflowError
from backend.queue.presence import Presence
from backend.settings import load_settings
from workers.celery_app import node_app, worker_arguments


def main() -> int:
    """Run until SIGTERM or Ctrl-C; 1 where the agent cannot start."""
    try:
        settings = load_settings()
        presence = Presence(settings)
        app, agent = node_app(settings)
    except StageflowError as fault:
        print(f"{fault}\n{fault.advice}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        # Until Celery sets its own. An exception could leave a lock of `logging` taken for ever.
        signal.signal(number, lambda *_: agent.stop())
    try:
        app.worker_main(worker_arguments(settings))
    finally:
        agent.stop()
        agent.join()
        presence.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
