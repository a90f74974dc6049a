"""Tells people that a run has ended, by whatever Apprise can reach: mail, chat, a webhook.

The URLs hold passwords: they are never logged, nor is what Apprise itself says of them.
"""

import logging
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.notifications.delivery import Delivery, DeliveryResult, DeliveryResults
from backend.notifications.message import Notification, message_of
from backend.runs.run import Run
from backend.settings import PREFIX, Settings

CLOSE_SECONDS = 20.0
SEND_SECONDS = 120.0
log = logging.getLogger(__name__)


class Notifier:
    """Tells every URL of `settings.notify` that a run has ended; it never raises and never waits.

    It sends from a thread of its own, by a process that may connect to the internet and to the
    allowed hosts alone: a mail server that hangs holds up no run.
    """

    def __init__(self, settings: Settings) -> None:
        self._urls = tuple(settings.notify.split())
        self._allowed = tuple(settings.notify_internal.split())
        self._address = settings.address
        self._sender = ThreadPoolExecutor(max_workers=1, thread_name_prefix="notify")
        self._sent: list[Future[None]] = []

    def notify(self, run: Run) -> None:
        if not self._urls:
            return
        try:
            message = message_of(run, self._address)
            self._sent = [sent for sent in self._sent if not sent.done()]
            self._sent.append(self._sender.submit(self._send, message))
        except Exception:
            log.exception("run %d: nobody was told of its end", run.id)

    def close(self) -> None:
        """Wait, for a few seconds at most, until what was told has gone out."""
        wait(self._sent, timeout=CLOSE_SECONDS)
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _send(self, message: Notification) -> None:
        order = Delivery(self._urls, message.title, message.body, self._allowed)
        try:
            outcomes = _deliver(order)
        except (OSError, subprocess.SubprocessError, InvalidInput) as fault:
            log.warning("notifications: none was delivered: %s", type(fault).__name__)
            return
        for number, outcome in enumerate(outcomes, start=1):
            if not outcome.delivered:
                why = _reason(outcome)
                log.warning("notification %d of %d was not delivered%s", number, len(outcomes), why)


def _deliver(order: Delivery) -> DeliveryResults:
    """What became of each URL."""
    done = subprocess.run(
        [sys.executable, "-m", "backend.notifications.delivery"],
        input=to_json(Delivery, order),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=SEND_SECONDS,
        check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith(PREFIX)},
    )
    found: DeliveryResults = from_json(DeliveryResults, done.stdout.splitlines()[-1])
    return found


def _reason(outcome: DeliveryResult) -> str:
    """Without a word of the URL."""
    if outcome.refused:
        return (
            f": its address {outcome.refused[0]} is internal; "
            "STAGEFLOW_NOTIFY_INTERNAL lists the internal hosts that are allowed"
        )
    return f": {outcome.fault}" if outcome.fault else ""
