"""How the tests talk to the API, below the client."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from app.api.operation import Operation


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    url: str,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """One request as it is: `path` from /api on, no header added but Host and the length."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=240)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())
    finally:
        connection.close()


def method_of(operation: Operation) -> str:
    (method,) = operation.methods
    return method


JSON = {"Content-Type": "application/json"}
