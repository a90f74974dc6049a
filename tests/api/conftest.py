"""The REST API on a real port of this machine, over a real database."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from app.api.site import api_routes
from app.client import Client
from app.gate.gate import Gate
from app.gate.routes import sign_in_routes
from app.server.connection import connected
from app.server.listening import options
from backend.bootstrap import Backend
from tests.api.matrix import Place, peopled
from tests.app import seed
from tests.ports import free_port


@dataclass(frozen=True)
class Served:
    """`url` of the server and what is in its database."""

    url: str
    backend: Backend
    seeded: seed.Seeded

    @property
    def client(self) -> Client:
        return Client(self.url)


def served_app() -> Starlette:
    """The API behind the gate, as the dashboard mounts it, without the pages."""
    gate = Middleware(Gate, connect=connected)
    return Starlette(routes=[*sign_in_routes(), *api_routes()], middleware=[gate])


@contextmanager
def serving() -> Iterator[str]:
    """The API's routes on a free port, in a thread."""
    port = free_port()
    config = uvicorn.Config(served_app(), port=port, log_level="error", **options())
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 240
    while not server.started:
        assert thread.is_alive(), "the server ended"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=120)


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As `home`, for all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
            patch.delenv(name)
        folder = tmp_path_factory.mktemp("api") / "home"
        patch.setenv("STAGEFLOW_HOME", str(folder))
        patch.setenv("STAGEFLOW_USER", "ada")
        patch.setenv("STAGEFLOW_RATE", "0")  # tests ask faster than people may
        yield folder


@pytest.fixture(scope="module")
def served(module_home: Path) -> Iterator[Served]:
    """One run in every state, behind the API."""
    backend = seed.fresh()
    found = seed.everything(backend)
    with serving() as url:
        yield Served(url, backend, found)
    backend.close()


@pytest.fixture(scope="module")
def place(module_home: Path) -> Iterator[Place]:
    """A server over a project, with somebody of every role."""
    with pytest.MonkeyPatch.context() as patch, serving() as url:
        found = peopled(url)
        patch.setenv("STAGEFLOW_SIGN_IN", "accounts")
        yield found
        found.backend.close()
