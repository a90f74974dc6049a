"""Where other machines reach this one."""

import socket

import psutil

OUTSIDE = ("192.0.2.1", 9)
"""An address of nobody (RFC 5737): asked for the way there, the kernel tells our own end of it,
and nothing is sent."""
LOOPBACK = "127.0.0.1"


def own_address(given: str = "") -> str:
    """`given` where there is one, else the address of the way to the outside, else loopback."""
    if given:
        return given
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(OUTSIDE)
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])


def interface(address: str) -> str:
    """The network interface that has `address`; "" where none has."""
    for name, known in psutil.net_if_addrs().items():
        if any(each.address == address for each in known):
            return name
    return ""
