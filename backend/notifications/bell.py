"""Tells people that a run has ended, by whatever Apprise can reach: mail, chat, a webhook.

The URLs hold passwords: they are never logged, nor is what Apprise itself says of them.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from backend.notifications.message import Message, message_of
from backend.runs.ports import Bell
from backend.runs.run import Run
from backend.settings import Settings

CLOSE_SECONDS = 10.0
log = logging.getLogger(__name__)


def bell_for(settings: Settings) -> Bell:
    """Rings at every URL of `settings.notify`; silent where there is none."""
    urls = settings.notify.split()
    return AppriseBell(urls, settings.address) if urls else SilentBell()


class SilentBell:
    """Nobody wants to know."""

    def ring(self, run: Run) -> None:
        pass

    def close(self) -> None:
        pass


class AppriseBell:
    """Sends from a thread of its own: a mail server that hangs holds up no run."""

    def __init__(self, urls: Sequence[str], address: str) -> None:
        self._urls = tuple(urls)
        self._address = address
        self._sender = ThreadPoolExecutor(max_workers=1, thread_name_prefix="notify")
        self._sent: list[Future[None]] = []

    def ring(self, run: Run) -> None:
        try:
            message = message_of(run, self._address)
            self._sent = [sent for sent in self._sent if not sent.done()]
            self._sent.append(self._sender.submit(self._send, message))
        except Exception:
            log.exception("run %d: nobody was told of its end", run.id)

    def close(self) -> None:
        wait(self._sent, timeout=CLOSE_SECONDS)
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _send(self, message: Message) -> None:
        for number, url in enumerate(self._urls, start=1):
            try:
                delivered = _deliver(url, message)
            except Exception as fault:
                log.warning("notification %d raised %s", number, type(fault).__name__)
                continue
            if not delivered:
                log.warning("notification %d of %d was not delivered", number, len(self._urls))


def _deliver(url: str, message: Message) -> bool:
    """Whether the service that `url` names took it."""
    import apprise  # slow to import, and most installations tell nobody

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    target: Any = apprise.Apprise()
    return bool(target.add(url) and target.notify(body=message.body, title=message.title))
