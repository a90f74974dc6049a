"""Nodes and the queue in words."""

from dataclasses import replace

from app.components.node_list import devices
from backend.cluster.presets import local

DEVICE = local(1).device


def test_equal_devices_are_counted() -> None:
    other = replace(DEVICE, name="H200", memory=139 * 1024**3)
    assert devices(()) == "—"
    assert devices((DEVICE, DEVICE)).startswith(f"2 × {DEVICE.name}")
    assert devices((DEVICE, other, other)).endswith("; 2 × H200, 139\u00a0GiB each")
