"""The table of devices: what names find, and that the page and the command ask one table."""

from itertools import product

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import PRESETS
from backend.comparison.variations import Axis, variations
from backend.errors import InvalidInput
from backend.profiles.devices import DEVICES, GIB, Precision, find, peak
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.transfer import on_device

PROFILE = Profile(
    "p",
    ModelGraph.chain(
        (
            Layer("dense", "Linear", 1.0, 2.0, 1000, 1000, 0.5, flops=1e13),
            Layer("relu", "ReLU", 1.5, 1.5, int(0.9e12), 0, flops=1e9),
        )
    ),
    4,
)


@pytest.mark.parametrize(
    ("text", "name", "precision"),
    [
        ("h100", "h100", None),
        ("h100-tf32", "h100", Precision.TF32),
        ("NVIDIA H100 80GB HBM3", "h100", None),
        ("NVIDIA H100 PCIe", "h100-pcie", None),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb", None),
        ("NVIDIA A100 80 GB PCIe", "a100-80gb", None),
        ("Tesla V100-SXM2-16GB", "v100", None),
        ("Titan X", "titan-x", None),
        ("V100 (fp32)", "v100", Precision.FLOAT32),
        ("A100 40 GB (tf32)", "a100", Precision.TF32),
        ("H100 SXM (bf16, dense)", "h100", Precision.BFLOAT16),
        ("TPU v5e", "tpu-v5e", None),
        ("tpu-v4-bf16", "tpu-v4", Precision.BFLOAT16),
        ("Jetson Orin Nano", "orin-nano", None),
        (peak("b200", "float16").name, "b200", Precision.FLOAT16),
    ],
)
def test_names_as_commands_drivers_and_stored_profiles_write_them(text, name, precision):
    assert find(text) == (DEVICES[name], precision)


@pytest.mark.parametrize("text", ["cpu", "", "unknown", "A10G", "Titan", "80GB"])
def test_other_names_are_not_guessed(text):
    assert find(text) is None


def test_the_name_says_the_precision_before_the_option_does():
    assert peak("h100-tf32", "bfloat16") == peak("h100", "tf32")
    assert peak("h100").flops == 67e12
    with pytest.raises(InvalidInput, match="TPU v4 does not compute in float32"):
        peak("tpu-v4")
    with pytest.raises(InvalidInput, match="T4 does not compute in bfloat16"):
        peak("t4", "bfloat16")
    with pytest.raises(InvalidInput, match="no precision 'int8'"):
        peak("t4", "int8")


def test_every_row_is_plausible_and_found_by_its_own_names():
    for name, row in DEVICES.items():
        assert find(name) == find(row.title) == (row, None)
        slowest = min(row.flops.values())
        assert 1e12 < slowest < 1e16
        assert row.flops.get(Precision.FLOAT32, slowest) == slowest
        assert 5e10 < row.bandwidth < 1e13
        assert 8 * GIB <= row.memory < 1000 * GIB
        assert row.watts is None or 10 <= row.watts <= 1000
        assert row.source


def test_the_devices_of_the_cluster_presets_are_in_the_table_with_their_memory():
    devices = [entry.build(2).device for name, entry in PRESETS.items() if name != "local"]
    for device in devices:
        row, _ = find(device.name)
        assert device.memory in (None, row.memory)
        assert device.name == row.title


PAIRS = [
    (here, there, precision)
    for here, there in product(DEVICES.values(), repeat=2)
    for precision in Precision
    if precision in here.flops and precision in there.flops
]


@pytest.mark.parametrize("precision", list(Precision))
def test_what_if_and_the_command_carry_a_profile_alike(precision):
    """For every pair of devices that compute in the precision."""
    for here, there, _ in (pair for pair in PAIRS if pair[2] is precision):
        cluster = Cluster((Level(2, 1e9),), Device(here.title))
        points = variations(cluster, 1, flushes=False, precision=precision)
        (point,) = [v for v in points if v.axis is Axis.DEVICE and v.label == there.title]
        commanded = on_device(PROFILE, there.name, here.name, precision)
        assert point.profile(PROFILE).layers == commanded.layers
        assert point.cluster.device.speed == 1.0
        assert here is there or point.cluster.device.memory == there.memory
