"""How the dashboard's server listens, beyond what Streamlit tells it."""

import os
from typing import Any

from streamlit.web.server.starlette import starlette_server

from app.server.slow_clients import HurriedProtocol

PROXIES = "FORWARDED_ALLOW_IPS"
"""The variable of Uvicorn, which believes this machine by itself: whoever is on it could come from
any address."""


def options() -> dict[str, Any]:
    """Of `uvicorn.Config`: named proxies alone say from where others come."""
    return {"http": HurriedProtocol, "forwarded_allow_ips": os.environ.get(PROXIES, "")}


def apply() -> None:
    """Streamlit starts the server; this adds to what it tells it."""
    told = vars(starlette_server)["_get_uvicorn_config_kwargs"]
    vars(starlette_server)["_get_uvicorn_config_kwargs"] = lambda: told() | options()
