"""A real MLflow tracking server with its pages, on this machine alone.

The whole of MLflow asks for older versions of packages than the rest of the project does, so that
it is unpacked, without what it needs, beside them: its server works with the newer ones.
"""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.ports import free_port

BESIDE = ("flask-cors", "graphene<4", "graphql-core<3.3", "graphql-relay<3.3", "huey<4")
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}


@contextmanager
def mlflow_server(folder: Path, seconds: float = 150.0) -> Iterator[str]:
    """The URL of a server that keeps its runs in `folder`; skips where it cannot be had."""
    packages = folder / "packages"
    wanted = (f"mlflow=={version('mlflow-skinny')}", *BESIDE)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    done = subprocess.run(
        [*install, f"--target={packages}", *wanted], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"MLflow's server cannot be installed: {done.stderr[-300:]}")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"],
            cwd=folder,
            env=os.environ | QUIET | {"PYTHONPATH": str(packages)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _await(server, url, seconds, folder / "log")
        yield url
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def _await(server: subprocess.Popen[bytes], url: str, seconds: float, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"MLflow's server did not start: {log.read_text()[-2000:]}")
