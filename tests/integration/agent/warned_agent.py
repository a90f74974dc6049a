"""A node agent without a queue, as a cluster's job has one: `python -m` this. SIGUSR1 warns it that
it will be ended in `WARNING` seconds, SIGTERM stops it; after either it leaves by itself."""

import signal
import threading

from backend.bootstrap import connect
from backend.settings import load_settings
from workers.node_agent import NodeAgent

WARNING = 60.0


def main() -> None:
    settings = load_settings()
    backend = connect(settings)
    backend.dispatch.go_by(settings.node)
    agent, asked = NodeAgent(backend), threading.Event()

    def warn(*_: object) -> None:
        agent.warn(WARNING)
        asked.set()

    def stop(*_: object) -> None:
        agent.stop()
        asked.set()

    signal.signal(signal.SIGUSR1, warn)
    signal.signal(signal.SIGTERM, stop)
    agent.start()
    while not asked.wait(0.2):
        pass
    agent.join()


if __name__ == "__main__":
    main()
