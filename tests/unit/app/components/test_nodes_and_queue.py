"""Nodes and the queue in words."""

from dataclasses import replace

from app.components.cluster.node_list import devices, use_text
from backend.cluster.presets import local
from backend.runs.dispatch.nodes import Use

DEVICE = local(1).device


def test_equal_devices_are_counted() -> None:
    other = replace(DEVICE, name="H200", memory=139 * 1024**3)
    assert devices(()) == "—"
    assert devices((DEVICE, DEVICE)).startswith(f"2 × {DEVICE.name}")
    assert devices((DEVICE, other, other)).endswith("; 2 × H200, 139\u00a0GiB each")


def test_use_leaves_out_what_nobody_knows() -> None:
    gib = 1024**3
    told = use_text(Use("machine", 0.43, 3.1 * gib, 15.6 * gib, 54.2)).replace("\u00a0", " ")
    assert told == "machine 43 % · 3.10 GiB of 15.6 GiB · 54 °C"
    assert use_text(Use("NVIDIA GB10")) == "NVIDIA GB10"
