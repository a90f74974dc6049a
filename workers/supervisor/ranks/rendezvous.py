"""A port at which the ranks of one run meet, kept free for them until they are gone."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def rendezvous(address: str) -> Iterator[int]:
    """The port of a bound socket that never listens, at the `address` of rank 0's host.

    With SO_REUSEADDR on both sides Linux lets rank 0's store, which sets it too, bind and
    listen on the same port, while a stranger's bind is refused: nobody can take the port
    between choosing it and using it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, 0))
        yield int(held.getsockname()[1])
