"""How a client speaks to the REST API."""

import json
from collections.abc import Mapping
from http.client import HTTPResponse
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlencode
from urllib.request import Request

from app.download import fetch
from app.server.answers import opened
from backend.codec import from_json

T = TypeVar("T")
NOTHING: Mapping[str, str] = MappingProxyType({})


class ServerConnection:
    """To one server; `token` is its STAGEFLOW_API_TOKEN, or a person's."""

    def __init__(self, url: str = "http://127.0.0.1:8501", token: str = "") -> None:
        self._url = url.rstrip("/") + "/api/v1"
        self._token = token

    def _get(self, path: str, kind: type[T], query: Mapping[str, Any] | None = None) -> T:
        return from_json(kind, self._ask("GET", path, query))

    def _send(
        self, method: str, path: str, kind: type[T], body: Mapping[str, Any] | None = None
    ) -> T:
        return from_json(kind, self._ask(method, path, body=body))

    def _save(self, address: str, path: Path | str) -> None:
        fetch(lambda headers: self._opened("GET", address, headers=headers), Path(path))

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> bytes:
        with self._opened(method, path, query, body) as answer:
            return answer.read()

    def _opened(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> HTTPResponse:
        """The server's answer, of which nothing is read yet."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        address = self._url + path + (f"?{urlencode(given, doseq=True)}" if given else "")
        sent = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        data = None
        if body is not None:
            data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = Request(address, data, {**sent, **headers}, method=method)
        return opened(request)
