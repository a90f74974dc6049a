"""The process that tells people: it may connect to the internet and to what is allowed.

`python -m backend.notifications.delivery` reads an order on standard input, so that the URLs,
which hold passwords, are in no list of processes, and says what became of each URL. The check is
made where a connection begins, after names were looked up, so that neither a redirect nor a name
that leads inside gets further.
"""

import logging
import sys
from dataclasses import dataclass, field
from typing import Any

from backend.codec import from_json, to_json
from backend.notifications.inside import Outside, outside

CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
STARTS = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"})


@dataclass(frozen=True, slots=True)
class Delivery:
    """`allowed` as `backend.notifications.inside.outside` takes it."""

    urls: tuple[str, ...]
    title: str
    body: str
    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Of one URL: was it delivered; `refused` addresses are inside; `fault` names what else
    went wrong, without a word of the URL."""

    delivered: bool
    refused: tuple[str, ...] = ()
    fault: str = ""


DeliveryResults = tuple[DeliveryResult, ...]


@dataclass(slots=True)
class ConnectionGuard:
    """An audit hook of this process that lets no connection go inside."""

    admitted: Outside
    refused: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in STARTS:
            raise PermissionError("a notification starts no process")
        if event in CONNECTS and (target := arguments[1]) is not None:  # None: it is connected
            host = _host(target)
            if not self.admitted.admits(host):
                self.refused.append(host)
                raise PermissionError("the address is inside")


def _host(target: object) -> str:
    """Where a socket is to connect or to send; a socket that is a file has no address."""
    return str(target[0]) if isinstance(target, tuple) else "a socket of this machine"


def main() -> None:
    """Carry out the order on standard input; print the `DeliveryResults` as the only line."""
    order: Delivery = from_json(Delivery, sys.stdin.buffer.read())
    import apprise  # slow to import, and it must have started before processes are refused

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    guard = ConnectionGuard(outside(order.allowed))
    sys.addaudithook(guard)
    outcomes = tuple(_told(url, order, guard, apprise) for url in order.urls)
    sys.stdout.buffer.write(to_json(DeliveryResults, outcomes) + b"\n")


def _told(url: str, order: Delivery, guard: ConnectionGuard, apprise: Any) -> DeliveryResult:
    guard.refused.clear()
    try:
        target = apprise.Apprise()
        delivered = bool(target.add(url) and target.notify(body=order.body, title=order.title))
    except Exception as fault:
        return DeliveryResult(False, tuple(guard.refused), type(fault).__name__)
    return DeliveryResult(delivered, tuple(guard.refused))


if __name__ == "__main__":
    main()
