"""What counts as inside, however the address is written."""

import pytest

from backend.notifications.inside import outside

INSIDE = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255"),
    *("192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1"),
    *("239.255.255.250", "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0"),
    *("fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"),
    *("2002:7f00:1::", "2002:a00:1::", "2001:0:1:1:1:1:80ff:fffe"),
)
OUTSIDE = ("1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("address", INSIDE)
def test_this_machine_and_its_networks_are_inside(address: str) -> None:
    assert not outside(()).admits(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_the_internet_is_outside(address: str) -> None:
    assert outside(()).admits(address)


@pytest.mark.parametrize("text", ["", "localhost", "a socket of this machine", "1.2.3", "٣.1.1.1"])
def test_what_is_no_address_is_not_connected_to(text: str) -> None:
    assert not outside(()).admits(text)


def test_what_is_allowed_is_allowed_alone() -> None:
    admitted = outside(["10.3.0.0/16", "localhost", "no.such.host.invalid", "::1", "10.4.0.1/31"])
    assert all(map(admitted.admits, ("10.3.200.1", "127.0.0.1", "::1", "10.4.0.0", "1.1.1.1")))
    assert not any(map(admitted.admits, ("10.2.0.1", "127.0.0.2", "10.4.0.2", "169.254.169.254")))
