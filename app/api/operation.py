"""What one operation of the REST API is: plain data, from which its route, its validation and
its OpenAPI entry are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from backend.bootstrap import Backend

Method = Literal["GET", "POST", "PATCH", "DELETE"]
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class NoQuery:
    """The operation takes no parameters in its query."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, validated: `path` by name, `query` and `body` as the operation's types."""

    backend: Backend
    path: Mapping[str, Any]
    query: Any
    body: Any

    def within(self, project_id: int | None) -> Backend:
        """The services in one project, where one is named. Raises `NotFound`."""
        return self.backend.within(project_id) if project_id else self.backend

    @property
    def id(self) -> int:
        """The number in the path."""
        return int(self.path["id"])


@dataclass(frozen=True, slots=True)
class File:
    """An answer that is no JSON: bytes, or a file on disk that is streamed."""

    content: bytes | Path
    name: str
    media: str


@dataclass(frozen=True, slots=True)
class Operation:
    """`answer` is the type of the JSON that comes back, None for a `File`; `query` and `body`
    are frozen dataclasses."""

    name: str
    method: Method
    path: str
    summary: str
    handle: Callable[[Call], Any]
    answer: Any
    query: type = NoQuery
    body: type | None = None
    status: int = 200
    media: str = JSON

    @property
    def group(self) -> str:
        """The first noun of the path, under which the operation is documented."""
        return self.path.split("/")[1]
