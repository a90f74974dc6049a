"""Devices that nobody here has, by their records: peaks, layers, and what is used instead."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.device_record import DeviceRecord, FlopRates
from backend.comparison.variations import Axis, variations
from backend.errors import InvalidInput
from backend.prediction.answer import rank
from backend.prediction.imagined import OWN, as_on, peak_of, precisions_of
from backend.prediction.question import Question
from backend.profiles.devices import DEVICES, Peak, Precision
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

GFLOPS, PER_WATT = 46.99e9, 6.09e9
RECORD = DeviceRecord(FlopRates(float32=GFLOPS), bandwidth=19.2e9, on_chip=4e6)
BOARD = Device("ZCU102", watts=GFLOPS / PER_WATT, record=RECORD)
"""EF-Train's board as published: 46.99 GFLOP/s, 6.09 of them per watt (arXiv 2202.10935). Bytes/s
are those of its 64-bit DDR4-2400, on-chip bytes those of its 32 Mbit of block memory."""
FLOAT = 4
ALEXNET = (
    #  name    output          weights
    ("conv1", 96 * 55 * 55, 96 * 3 * 11 * 11),
    ("conv2", 256 * 27 * 27, 256 * 48 * 5 * 5),
    ("conv3", 384 * 13 * 13, 384 * 256 * 3 * 3),
    ("conv4", 384 * 13 * 13, 384 * 192 * 3 * 3),
    ("conv5", 256 * 13 * 13, 256 * 192 * 3 * 3),
    ("fc6", 4096, 4096 * 9216),
    ("fc7", 4096, 4096 * 4096),
    ("fc8", 1000, 1000 * 4096),
)
PLACES = {"conv1": 55 * 55, "conv2": 27 * 27, "conv3": 169, "conv4": 169, "conv5": 169}
"""At how many places of an image a layer's weights are used."""


def alexnet(microbatch: int) -> Profile:
    """AlexNet (Krizhevsky et al., 2012), its convolutions in two groups as there."""
    layers = (
        Layer(
            name,
            "Conv2d" if name in PLACES else "Linear",
            1e-3,
            2e-3,
            output * FLOAT * microbatch,
            weights * FLOAT,
            flops=2.0 * weights * PLACES.get(name, 1) * microbatch,
        )
        for name, output, weights in ALEXNET
    )
    return Profile("alexnet", ModelGraph.chain(tuple(layers)), microbatch)


def test_ef_trains_board_takes_0_7_joules_for_a_sample_of_alexnet() -> None:
    profile = alexnet(128)
    cluster = Cluster((Level(1, 1e9),), BOARD)
    question = Question(profile, cluster, "straight", "1f1b-flush", 1).under(device=OWN)
    [found] = rank(question)
    flops = sum(layer.flops or 0.0 for layer in profile.layers) / 128
    assert flops == pytest.approx(1.45e9, rel=0.01)
    assert pytest.approx(7.7, abs=0.05) == BOARD.watts
    assert found.energy is not None
    assert found.energy.joules == pytest.approx(3 * flops / PER_WATT, rel=0.01)
    assert found.energy.joules == pytest.approx(0.71, abs=0.01)


def test_a_layer_that_memory_binds_takes_its_bytes() -> None:
    slow = replace(BOARD, record=replace(RECORD, bandwidth=1e6, on_chip=None, launch=0.25))
    plain = alexnet(1)
    first, second, *_ = as_on(plain, OWN, slow).layers
    read, kept = (layer.output_bytes for layer in plain.layers[:2])
    moved = read + plain.layers[1].parameter_bytes + kept
    assert second.forward == pytest.approx(0.25 + moved / 1e6)
    assert second.backward == pytest.approx(2 * second.forward)
    assert first.update == pytest.approx(5 * first.parameter_bytes / 1e6)


def test_the_share_of_the_peak_that_was_reached_is_kept_where_it_is_known() -> None:
    """Twice as long as the roofline of a V100 says is twice as long as the board's."""
    v100 = DEVICES["v100"].peak(Precision.FLOAT32)
    plain = alexnet(128)
    computed = as_on(plain, OWN, BOARD)
    here = plain.with_layers(
        replace(layer, forward=2 * _bound(plain, number, v100))
        for number, layer in enumerate(plain.layers)
    )
    carried = as_on(here, OWN, BOARD, "v100")
    for mine, bare in zip(carried.layers, computed.layers, strict=True):
        assert mine.forward == pytest.approx(2 * bare.forward)


def _bound(profile: Profile, number: int, peak: Peak) -> float:
    layer = profile.layers[number]
    read = profile.layers[number - 1].output_bytes if number else 0
    moved = read + layer.parameter_bytes + layer.output_bytes
    return max((layer.flops or 0.0) / peak.flops, moved / peak.bandwidth)


def test_what_the_record_leaves_out_is_the_tables_and_said() -> None:
    half = Device("H100", record=DeviceRecord(bandwidth=1e12))
    assert peak_of(half, "bfloat16") == Peak("H100 (bfloat16)", 989.4e12, 1e12)
    note = as_on(alexnet(1), OWN, half).notes[-1]
    assert "its operations/s are those of H100 data sheet" in note
    assert "the bytes/s" not in note
    assert "moved once" in note
    assert "counts as 0" in note
    full = replace(BOARD, record=replace(RECORD, launch=1e-6))
    assert "ZCU102:" not in as_on(alexnet(1), OWN, full).notes[-1]
    assert precisions_of(BOARD) == (Precision.FLOAT32,)


@pytest.mark.parametrize(
    ("device", "profile", "precision", "said"),
    [
        (Device("cpu"), alexnet(1), "", "no operations/s in float32 or no bytes/s"),
        (BOARD, alexnet(1), "bfloat16", "no operations/s in bfloat16"),
        (BOARD, alexnet(1), "int8", "no precision"),
        (
            BOARD,
            Profile("p", ModelGraph.chain((Layer("l", "Linear", 1.0, 2.0, 4, 4),)), 1),
            "",
            "nor the operations of layer 'l'",
        ),
    ],
)
def test_what_cannot_be_computed_is_refused(
    device: Device, profile: Profile, precision: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        as_on(profile, OWN, device, "", precision)
    assert caught.value.advice


def test_what_if_compares_a_board_with_known_types_by_the_peaks_of_both() -> None:
    cluster = Cluster((Level(2, 1e9),), BOARD)
    points = [v for v in variations(cluster, 1, flushes=False) if v.axis is Axis.DEVICE]
    assert [v.label for v in points if v.is_base] == ["ZCU102"]
    (v100,) = [v for v in points if v.label == "V100"]
    assert v100.value == pytest.approx(15.7e12 / GFLOPS)
    assert v100.profile(alexnet(1)).compute < alexnet(1).compute
