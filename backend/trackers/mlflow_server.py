"""The connection to an MLflow tracking server (or its database file), and what its errors mean."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit, urlunsplit

from backend.errors import StageflowError
from backend.trackers.tracker import RunGoneThere, TrackerAway, TrackerRefuses, require

SCHEME = "mlflow+"
EXPERIMENT = "Stageflow"
"""Where the address names none."""
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}
"""MLflow's own variables: it tells nobody else, and does not wait long for a server."""
GONE = ("RESOURCE_DOES_NOT_EXIST",)
REFUSED = re.compile(r"error code (401|403)\b|\b(UNAUTHENTICATED|PERMISSION_DENIED)\b")
LONGEST = 300


@dataclass(frozen=True, slots=True)
class MlflowServer:
    """`uri` as MLflow takes it, without user, password or token."""

    uri: str
    experiment: str = EXPERIMENT
    user: str = ""
    password: str = ""

    @property
    def is_http(self) -> bool:
        return self.uri.startswith("http")

    def client(self) -> Any:
        """MLflow's client of it. Raises `TrackerNotInstalled`, `TrackerAway`."""
        require("mlflow", "mlflow")
        os.environ.update(QUIET | self._credentials())
        with reading():
            return _client(self.uri)

    def page(self, experiment: str, run: str) -> str:
        """The URL of a run's page; "" where there is no server."""
        return f"{self.uri}/#/experiments/{experiment}/runs/{run}" if self.is_http else ""

    def _credentials(self) -> dict[str, str]:
        if not self.user:
            return {}
        if not self.password:
            return {"MLFLOW_TRACKING_TOKEN": self.user}
        return {
            "MLFLOW_TRACKING_USERNAME": self.user,
            "MLFLOW_TRACKING_PASSWORD": self.password,
        }


def mlflow_server(address: str) -> MlflowServer:
    """Of `mlflow+http://USER:PASSWORD@HOST:5000?experiment=NAME`, of a token in the place of user
    and password, or of `mlflow+sqlite:///FILE`."""
    parts = urlsplit(address.removeprefix(SCHEME))
    asked = parse_qs(parts.query)
    host = parts.netloc.rpartition("@")[2]
    bare = SplitResult(parts.scheme, host, parts.path, "", "")
    uri = f"{parts.scheme}://{parts.path}" if not host else urlunsplit(bare).rstrip("/")
    name = asked.get("experiment", [""])[0] or EXPERIMENT
    return MlflowServer(uri, name, unquote(parts.username or ""), unquote(parts.password or ""))


@lru_cache(maxsize=4)
def _client(uri: str) -> Any:
    """Slow to import: seconds."""
    from mlflow.tracking import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    return MlflowClient(uri)


@contextmanager
def reading(run: str = "") -> Iterator[None]:
    """What MLflow raises, as what it means for whoever asked for `run`."""
    try:
        yield
    except StageflowError:
        raise
    except Exception as fault:  # it raises errors of its own, of requests, and of SQLAlchemy
        raise _meant(fault, run) from None


def _meant(fault: Exception, run: str) -> TrackerAway | TrackerRefuses:
    text = " ".join(str(fault).split())
    code = getattr(fault, "error_code", "")
    if run and (code in GONE or "Current state is deleted" in text):
        return RunGoneThere(
            f"MLflow has no run {run}: it was deleted there",
            "Follow the run again: it becomes a new one in MLflow.",
        )
    if REFUSED.search(f"{code} {text}"):
        return TrackerRefuses(
            "MLflow refuses the user, password or token",
            "Put the right one into STAGEFLOW_TRACKERS, start again, and follow the run again.",
        )
    if code in ("INVALID_PARAMETER_VALUE", "RESOURCE_ALREADY_EXISTS", "BAD_REQUEST"):
        return TrackerRefuses(f"MLflow refuses it: {text[:LONGEST]}")
    return TrackerAway(
        f"MLflow does not answer: {text[:LONGEST]}", "Stageflow tries again by itself."
    )
