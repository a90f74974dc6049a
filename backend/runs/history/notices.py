"""What people are told of runs, and where: mail, a chat, a webhook of their own."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from backend.errors import InvalidInput
from backend.runs.run import Run
from backend.runs.states import RunState

MAX_PLACES = 10
MAX_ADDRESS = 500
HUNG = "RankHung"
"""The kind of error of an attempt whose rank stood still."""
MAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", re.ASCII)


class RunEvent(StrEnum):
    """What can be told. A run that reached its target has finished too; a run that stalled may go
    on by itself."""

    FINISHED = "finished"
    FAILED = "failed"
    TARGET = "target reached"
    STALLED = "stalled"


class PlaceKind(StrEnum):
    """MAIL: an address. CHAT: an incoming webhook of Slack, Mattermost, Rocket.Chat, Google Chat
    or Discord. WEBHOOK: an address that takes JSON with a title and a message."""

    MAIL = "mail"
    CHAT = "chat"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class NoticePlace:
    """Where somebody is told, of which events, and of which runs: those that they launched, or all
    that they see; and in any case those that they watch. `address` is a secret but of mail."""

    id: int
    person_id: int
    kind: PlaceKind
    address: str
    events: tuple[RunEvent, ...]
    runs: Literal["mine", "all"]
    created_at: datetime

    @property
    def hint(self) -> str:
        """The address as it may be shown."""
        if self.kind is PlaceKind.MAIL:
            return self.address
        url = urlsplit(self.address)
        return f"{url.scheme}://{url.hostname}/…"


def place_address(kind: PlaceKind, text: str) -> str:
    """Without the space around it. Raises `InvalidInput` where it can be no such place."""
    found = text.strip()
    if kind is PlaceKind.MAIL:
        if len(found) <= MAX_ADDRESS and MAIL.fullmatch(found):
            return found
        raise InvalidInput("this is not a mail address", "Give one, such as ada@example.org.")
    try:
        url = urlsplit(found)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        is_url = is_url and "@" not in url.netloc
    except ValueError:
        is_url = False
    if not is_url or len(found) > MAX_ADDRESS or not found.isprintable() or " " in found:
        raise InvalidInput(
            f"this is not the address of a {kind.value}",
            "Give one that begins with https://, no password.",
        )
    return found


def events_of(run: Run) -> frozenset[RunEvent]:
    """What has happened to a run that has ended."""
    if run.state is RunState.FAILED:
        stalled = run.error is not None and run.error.kind == HUNG
        return frozenset({RunEvent.FAILED, *([RunEvent.STALLED] if stalled else [])})
    reached = run.summary.seconds_to_target is not None
    return frozenset({RunEvent.FINISHED, *([RunEvent.TARGET] if reached else [])})
