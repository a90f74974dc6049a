"""Cluster files: what people write, and what they write wrong."""

from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backend.cluster.cluster import MOST_DEVICES, Cluster, Device, Level
from backend.cluster.device_record import DeviceRecord, FlopRates
from backend.cluster.document import EXAMPLE, read_cluster, write_cluster
from backend.errors import InvalidInput

ONE = "levels: [{count: 2, bandwidth: 1}]"


def test_the_example_is_two_levels_and_a_device():
    assert read_cluster(EXAMPLE) == Cluster(
        (Level(4, 12e9, 5e-6), Level(4, 1.25e9)), Device("V100", 16e9, 1.0)
    )


def test_numbers_that_yaml_reads_as_strings_are_numbers():
    cluster = read_cluster("levels: [{count: '3', bandwidth: 12e9, latency: 5e-6}]")
    assert cluster.levels == (Level(3, 12e9, 5e-6),)


def test_operations_by_precision_or_of_float32_alone():
    text = f"{ONE}\ndevice: {{name: board, flops: {{}}, bandwidth: 19.2e9}}"
    for written, rates in (
        ("47e9", FlopRates(47e9)),
        ("{bfloat16: 1e12, float32: 2e11}", FlopRates(2e11, bfloat16=1e12)),
    ):
        device = read_cluster(text.replace("{}", written)).device
        assert device == Device("board", record=DeviceRecord(rates, 19.2e9))


def test_a_device_may_be_left_out():
    assert read_cluster(ONE).device == Device()


@given(
    st.lists(
        st.builds(Level, st.integers(1, 64), st.floats(1, 1e12), st.floats(0, 1)),
        min_size=1,
        max_size=3,
    ),
    st.builds(
        Device,
        st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1),
        st.none() | st.floats(1, 1e12),
        st.floats(0.01, 100),
        st.none() | st.floats(50, 1000),
        st.none() | st.floats(0, 50),
        st.builds(
            DeviceRecord,
            st.builds(FlopRates, *[st.none() | st.floats(1, 1e18)] * 4),
            *[st.none() | st.floats(1, 1e13)] * 2,
            *[st.none() | st.floats(0, 1)] * 4,
        ),
        st.none() | st.floats(0, 100),
    ),
)
def test_what_is_written_is_read_back(levels, device):
    assume(prod(level.count for level in levels) <= MOST_DEVICES)
    cluster = Cluster(tuple(levels), device)
    assert read_cluster(write_cluster(cluster)) == cluster


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("levels: [{count: 4, bandwidth: 12e9", "line 1"),
        ("levels:\n  - count: 4\n   bandwidth: 1", "line 3"),
        ("a\x00b", "not valid YAML"),
        ("[" * 3000, "not valid YAML"),
        ("", "mapping"),
        ("just text", "mapping"),
        ("levels: 4", "levels: a list"),
        ("levels: [{count: 99999999999, bandwidth: 1}]", "more than 16,384 devices"),
        (
            "levels: [{count: 200, bandwidth: 1}, {count: 200, bandwidth: 1}]",
            "more than 16,384 devices",
        ),
        ("levels: [" + "{count: 1e300, bandwidth: 1}," * 20 + "]", "more than 16,384 devices"),
        ("levels: []", "levels: a list"),
        ("levels: [4]", r"levels\[0\]: a mapping"),
        ("levels: [{count: 4}]", r"levels\[0\]: bandwidth is missing"),
        ("levels: [{bandwidth: 4}]", r"levels\[0\]: count is missing"),
        ("levels: [{count: 2, bandwith: 1}]", "unknown field 'bandwith'"),
        ("levels: [{count: 2.5, bandwidth: 1}]", r"levels\[0\].count: 2.5"),
        ("levels: [{count: yes, bandwidth: 1}]", r"levels\[0\].count: True"),
        ("levels: [{count: .inf, bandwidth: 1}]", r"levels\[0\].count: inf"),
        ("levels: [{count: 2, bandwidth: fast}]", r"levels\[0\].bandwidth: 'fast'"),
        ("levels: [{count: 2, bandwidth: 1}]\ndevice: {watts: 0}", "0 W at work"),
        (f"{ONE}\ndevice: {{flops: 0}}", "flops of float32 is 0, not above 0"),
        (f"{ONE}\ndevice: {{flops: {{int8: 1}}}}", "unknown field 'int8'"),
        (f"{ONE}\ndevice: {{flops: {{tf32: fast}}}}", "flops.tf32: 'fast' is not a number"),
        (f"{ONE}\ndevice: {{flops: [1]}}", r"flops: \[1\] is not a number"),
        (f"{ONE}\ndevice: {{price: -1}}", "price: -1 is not a number of 0 or more"),
        (f"{ONE}\ndevice: {{on_chip: 0}}", "on_chip is 0, not above 0"),
        (f"{ONE}\ndevice: {{joules_per_byte: -1}}", "joules_per_byte: -1"),
        (
            "levels: [{count: 2, bandwidth: 1}]\ndevice: {watts: 50, idle_watts: 60}",
            "50 W at work and 60 W while it waits",
        ),
        ("levels: [{count: 2, bandwidth: 1}]\ndevice: {watts: much}", "device.watts: 'much'"),
        ("levels: [{count: 2, bandwidth: .nan}]", r"levels\[0\].bandwidth: nan"),
        ("levels: [{count: 2, bandwidth: 0}]", "bandwidth 0"),
        ("levels: [{count: 2, bandwidth: 1, latency: -1}]", r"levels\[0\].latency: -1"),
        ("levels: [{count: 0, bandwidth: 1}]", "count 0"),
        (ONE + "\ndevice: V100", "device: a mapping"),
        (ONE + "\ndevice: {speed: 0}", "speed 0"),
        (ONE + "\ndevice: {memory: lots}", "device.memory: 'lots'"),
        (ONE + "\nracks: 2", "unknown field 'racks'"),
        ("!!python/object/apply:os.system ['true']", "python/object"),
        ("x" * 200_000, "200000 characters"),
    ],
)
def test_a_wrong_file_is_refused_in_words(text, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        read_cluster(text)
    assert refusal.value.advice
