"""`python -m app.health [agent]`: ends with code 0 where this machine's dashboard, or its node
agent, is well."""

import json
import sys
import urllib.request

from backend.bootstrap import connect
from backend.errors import StageflowError
from backend.settings import EVERYWHERE, load_settings


def dashboard_is_well() -> bool:
    """Whether /healthz says "ok": an unknown path would answer 200 with a page."""
    settings = load_settings()
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    try:
        with urllib.request.urlopen(f"http://{host}:{settings.port}/healthz", timeout=4) as answer:
            return bool(json.load(answer).get("status") == "ok")
    except (OSError, ValueError):
        return False


def agent_is_well() -> bool:
    """Whether the database has heard of this machine's agent within its lease."""
    try:
        backend = connect()
        nodes = backend.nodes.list()
    except StageflowError:
        return False
    return any(node.alive for node in nodes if node.name == backend.settings.node)


if __name__ == "__main__":
    well = agent_is_well() if sys.argv[1:] == ["agent"] else dashboard_is_well()
    sys.exit(0 if well else 1)
