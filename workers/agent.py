"""Start the node agent of this machine: `python -m workers.agent`."""

import sys

from backend.errors import StageflowError
from backend.settings import load_settings
from workers.celery_app import node_app, worker_arguments


def main() -> int:
    """Run until SIGTERM or Ctrl-C; 1 where the agent cannot start."""
    try:
        settings = load_settings()
        app = node_app(settings)
    except StageflowError as fault:
        print(f"{fault}\n{fault.advice}", file=sys.stderr)
        return 1
    app.worker_main(worker_arguments(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
