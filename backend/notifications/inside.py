"""Which addresses lie inside: this machine, its networks, and whatever is not the internet."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Admits the internet, and inside of it only what lies in `allowed`."""

    allowed: tuple[IPv4Network | IPv6Network, ...] = ()

    def admits(self, host: str) -> bool:
        """Whether a connection to the address may be made; never to what is no address."""
        try:
            address = _plain(ip_address(host.partition("%")[0]))
        except ValueError:
            return False
        return is_outside(address) or any(address in network for network in self.allowed)


def outside(allowed: Iterable[str]) -> Outside:
    """`allowed`: networks ("10.3.0.0/16"), addresses, and names, which count for the addresses
    that they have now. What is none of these allows nothing."""
    return Outside(tuple(network for word in allowed for network in _networks(word)))


def is_outside(address: Address) -> bool:
    """Neither this machine, nor a private or link-local network, nor a multicast group."""
    return address.is_global and not address.is_multicast


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address carries, where it carries one."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


def _networks(word: str) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(word, strict=False)]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(word, None)
    except (OSError, UnicodeError):
        return []
    return [ip_network(str(entry[4][0]).partition("%")[0]) for entry in found]
