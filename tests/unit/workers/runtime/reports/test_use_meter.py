"""What a rank's process uses: bytes over its connections, cores, memory."""

import socket
import sys

import pytest

from workers.runtime.reports.use_meter import RankUseMeter, traffic


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone tells")
def test_bytes_of_open_connections_are_counted() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        sent, received = traffic()
        meter = RankUseMeter()
        one.sendall(b"x" * 100_000)
        taken = 0
        while taken < 100_000:
            taken += len(other.recv(65536))
        other.sendall(b"y")  # with it comes the word that all of it has arrived
        assert one.recv(1) == b"y"
        after = traffic()
        use = meter()
    assert after[0] - sent >= 100_000
    assert after[1] - received == 100_001
    assert use.sent is not None
    assert use.received is not None
    assert min(use.sent, use.received) > 0
    assert use.share is not None
    assert use.memory is not None
    assert use.memory > 1e6
    assert (use.name, use.watts) == ("cpu", None)
