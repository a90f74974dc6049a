"""Pages, REST API, /metrics and /healthz on one port: `python -m app.asgi`, or any ASGI server."""

import tomllib
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app import charts, components
from app.api.site import api_routes
from app.api.stopwatch import Stopwatch
from app.components.shell import boundary
from app.gate import exposure
from app.gate.gate import Gate
from app.gate.routes import sign_in_routes
from app.gate.run_files import file_routes
from app.server import listening, request_limits, searchers
from app.server.bundle import Bundle
from app.server.connection import connected
from app.server.deep_links import DeepLinks
from app.server.prefetch import prefetch
from app.server.sessions import Sessions
from app.session.state import Page
from app.version import stageflow_version
from backend.errors import StageflowError
from backend.settings import LOOPBACK, Settings, load_settings
from backend.storage.revision import current

HERE = Path(__file__).parent


def healthz(request: Request) -> JSONResponse:
    """200 with status, version and schema; 503 where the database is absent or outdated."""
    body: dict[str, Any] = {"version": stageflow_version()}
    try:
        now, needed = current(load_settings())
    except StageflowError as error:
        return JSONResponse(body | {"status": "down", "problem": str(error)}, status_code=503)
    status = "ok" if now == needed else "outdated"
    body |= {"status": status, "schema": now, "schema_needed": needed}
    return JSONResponse(body, status_code=200 if status == "ok" else 503)


def configuration(host: str, port: int) -> dict[str, Any]:
    """Streamlit's options: those of .streamlit/config.toml and where to listen.

    They are passed on because Streamlit looks for the file beside whatever program started
    it. On a local address only local names are answered, against DNS rebinding.
    """
    options = _flat(tomllib.loads((HERE / ".streamlit" / "config.toml").read_text()))
    options |= {"server.address": host, "server.port": port}
    if host in LOOPBACK:
        options["server.allowedHosts"] = sorted(LOOPBACK)
    return options


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


app = st.App(
    HERE / "main.py",
    routes=[Route("/healthz", healthz), *sign_in_routes(), *api_routes(), *file_routes()],
    middleware=[
        Middleware(Stopwatch),
        Middleware(Gate, connect=connected),
        Middleware(Sessions),
        Middleware(DeepLinks, pages=[page.path for page in Page]),
        Middleware(Bundle),
    ],
    on_script_error=boundary.show,
)


def serve(settings: Settings) -> None:
    """Answer on the settings' host and port until interrupted. Raises `OpenToEverybody`."""
    exposure.check(settings)
    searchers.start()
    prefetch(components, charts)
    request_limits.apply()
    listening.apply()
    app.run(config=configuration(settings.host, settings.port))


if __name__ == "__main__":
    serve(load_settings())
