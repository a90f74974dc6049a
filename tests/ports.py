"""Ports for the servers that tests start."""

import itertools
import os
import random
import socket

_EPHEMERAL = 32_768
"""From here on Linux takes ports for connections: such a one may be gone before a server has it."""
_FIRST, _SPAN = 10_000, 1_000


def _candidates() -> "itertools.cycle[int]":
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % 10
    ports = list(range(_FIRST + worker * _SPAN, _FIRST + (worker + 1) * _SPAN))
    assert ports[-1] < _EPHEMERAL
    random.Random(os.getpid()).shuffle(ports)
    return itertools.cycle(ports)


_PORTS = _candidates()


def free_port() -> int:
    """One of 127.0.0.1 that nobody listens on, and that this process gives once."""
    for port in _PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("unreachable: the ports have no end")
