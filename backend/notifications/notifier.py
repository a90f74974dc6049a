"""Tells people that a run has ended, by whatever Apprise can reach: mail, chat, a webhook.

The URLs hold passwords: they are never logged, nor is what Apprise itself says of them.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.notifications.delivery import Delivery, DeliveryResult, DeliveryResults
from backend.notifications.message import (
    Notification,
    message_of,
    stalled_message,
    trial_message,
)
from backend.notifications.places import apprise_url
from backend.runs.history.notices import NoticePlace, PlaceKind, RunEvent, events_of
from backend.runs.run import Run, RunError
from backend.setting_files import PREFIX
from backend.settings import Settings

CLOSE_SECONDS = 20.0
SEND_SECONDS = 120.0
Places = Callable[[Run, frozenset[RunEvent]], Sequence[NoticePlace]]
"""Who wants to be told of these events of a run."""
log = logging.getLogger(__name__)


class Notifier:
    """Tells every URL of `settings.notify` that a run has ended, and people what they asked to be
    told, at their `places`; but for a test it never raises and never waits.

    It sends from a thread of its own, by a process that may connect to the internet and to the
    allowed hosts alone: a mail server that hangs holds up no run.
    """

    def __init__(self, settings: Settings, places: Places = lambda run, events: ()) -> None:
        self._places, self._mail = places, settings.notify_mail
        self._urls = tuple(settings.notify.split())
        self._allowed = tuple(settings.notify_internal.split())
        self._address = settings.address
        self._sender = ThreadPoolExecutor(max_workers=1, thread_name_prefix="notify")
        self._sent: list[Future[None]] = []

    def notify(self, run: Run) -> None:
        """Tell the settings' URLs, and whoever wants to know it, that the run has ended."""
        self._tell(run, message_of(run, self._address), self._urls, events_of(run))

    def stalled(self, run: Run, why: RunError) -> None:
        """Tell whoever wants to know it that an attempt stood still, of a run that goes on."""
        message = stalled_message(run, why, self._address)
        self._tell(run, message, (), frozenset({RunEvent.STALLED}))

    def try_now(self, place: NoticePlace) -> str:
        """Send a test, and wait for what becomes of it: "" where it was delivered, else why not,
        for people. Blocks for seconds."""
        if not apprise_url(place, self._mail):
            return "no mail server is set up: STAGEFLOW_NOTIFY_MAIL names it"
        message = trial_message(self._address)
        try:
            ((outcome, *_),) = [_deliver(order) for order in self._orders(message, (), [place])]
        except (OSError, subprocess.SubprocessError, InvalidInput) as fault:
            return type(fault).__name__
        if outcome.delivered:
            return ""
        return _reason(outcome).removeprefix(": ") or "the receiver refused it"

    def _tell(
        self, run: Run, message: Notification, urls: Sequence[str], events: frozenset[RunEvent]
    ) -> None:
        try:
            places = self._places(run, events)
            orders = self._orders(message, urls, places)
            self._sent = [sent for sent in self._sent if not sent.done()]
            self._sent += [self._sender.submit(self._send, order) for order in orders]
        except Exception:
            log.exception("run %d: nobody was told of it", run.id)

    def _orders(
        self, message: Notification, urls: Sequence[str], places: Sequence[NoticePlace]
    ) -> list[Delivery]:
        """Chats take no title: it is the first line there."""
        chats = [each for each in places if each.kind is PlaceKind.CHAT]
        others = [apprise_url(each, self._mail) for each in places if each not in chats]
        plain = (*urls, *filter(None, others))
        said = f"{message.title}\n{message.body}"
        told = tuple(apprise_url(each, self._mail) for each in chats)
        both = ((plain, message.title, message.body), (told, "", said))
        return [Delivery(to, title, body, self._allowed) for to, title, body in both if to]

    def close(self) -> None:
        """Wait, for a few seconds at most, until what was told has gone out."""
        wait(self._sent, timeout=CLOSE_SECONDS)
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _send(self, order: Delivery) -> None:
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
