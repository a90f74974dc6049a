"""Who takes the place of a node that went away, and who does not."""

from datetime import UTC, datetime

import pytest

from backend.cluster.cluster import Device
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.nodes import Node
from backend.runs.request.spec import TrainSpec
from backend.services.runs.stand_in import stood_in

SMALL, LARGE = (Device("cpu", 2e9),), (Device("gpu", 8e9),)
SPEC = TrainSpec(
    1, Plan("", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "pipedream", 4), nodes=("a", "b")
)


def nodes(alive: str, large: str = "", gone: str = "") -> list[Node]:
    """Nodes a to e, of which some are alive, large, or not registered."""
    return [
        Node(name, LARGE if name in large else SMALL, name in alive, datetime.now(UTC), {})
        for name in "abcde"
        if name not in gone
    ]


@pytest.mark.parametrize(
    ("found", "busy", "leader", "taken"),
    [
        (nodes("abcde"), "", "c", "ab"),  # nobody went away
        (nodes("acde"), "", "", "ac"),
        (nodes("acde"), "", "c", "ac"),
        (nodes("acde"), "c", "", "ad"),
        (nodes("acde", large="c"), "", "", "ad"),  # other devices
        (nodes("ac"), "c", "", "ab"),  # nobody is free: it waits
        (nodes("acde", gone="b"), "", "", "ab"),  # nobody knows what it had
        (nodes("bcde"), "", "", "ab"),  # who leads must have the checkpoint
        (nodes("bcde"), "", "d", "db"),
        (nodes("bcde"), "d", "d", "ab"),
        (nodes("cde"), "", "c", "cd"),  # both at once
        (nodes("c"), "", "c", "cb"),
    ],
)
def test_who_stands_in(found: list[Node], busy: str, leader: str, taken: str):
    assert "".join(stood_in(SPEC, found, {name: {0: 9} for name in busy}, leader)) == taken


@pytest.mark.parametrize(
    ("devices", "fits"),
    [
        ((Device("cpu", 1.999e9),), True),  # the kernel keeps some megabytes for itself
        ((Device("cpu", 9e9),), True),
        ((Device("cpu", 1.5e9),), False),
        ((Device("cpu"),), False),  # nobody knows
        ((Device("cpu", 2e9, speed=0.5),), False),
        ((Device("cpu", 2e9),) * 2, False),  # the plan's devices are numbered through
    ],
)
def test_which_devices_will_do(devices: tuple[Device, ...], fits: bool):
    found = [*nodes("a", gone="cde"), Node("c", devices, True, datetime.now(UTC), {})]
    assert stood_in(SPEC, found, {}) == ("a", "c" if fits else "b")
