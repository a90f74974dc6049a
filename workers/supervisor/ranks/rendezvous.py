"""A port at which the ranks of one run meet, kept free for them until they are gone."""

import socket
from types import TracebackType

from workers.supervisor.ranks.place import LOOPBACK


class Rendezvous:
    """A bound socket that never listens, at the `address` where rank 0's host is reached.

    With SO_REUSEADDR on both sides Linux lets rank 0's store, which sets it too, bind and
    listen on the same port, while a stranger's bind is refused: nobody can take the port
    between choosing it and using it.
    """

    def __init__(self, address: str = LOOPBACK) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((address, 0))

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def __enter__(self) -> "Rendezvous":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
