"""Contract of every codec: its bytes are known before, both ends read the same, nothing that is no
number is lost."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.blocks import BLOCK
from backend.pipeline.codecs.catalog import (
    AUTO,
    CODECS,
    check_codecs,
    check_wanted,
    codecs_of,
    write_codecs,
)
from backend.pipeline.codecs.codec import Numbers
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.messages.coding import Coding

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
WAYS = [(name, flow) for name in CODECS for flow in Flow]


def drawn(count, dtype=torch.float32, seed=0):
    return torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def coder_of(name, flow, tensor):
    round_trip = ROUND_TRIPS[name]()
    if flow is Flow.GRADIENT:
        round_trip.of(Flow.ACTIVATION).encode(drawn(tensor.numel(), seed=1).view_as(tensor))
    return round_trip.of(flow)


def read_again(name, flow, tensor):
    """By one end; of gradients after activations of the same size."""
    coder = coder_of(name, flow, tensor)
    return coder.decode(coder.encode(tensor), TensorSpec.of(tensor))


def test_backend_and_workers_have_the_same_codecs():
    assert ROUND_TRIPS.keys() == CODECS.keys()


@pytest.mark.parametrize(("name", "flow"), WAYS)
@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 5), each=st.integers(1, 2 * BLOCK), dtype=st.sampled_from(DTYPES))
def test_bytes_are_those_that_the_catalog_says(name, flow, rows, each, dtype):
    tensor = drawn(rows * each, dtype).view(rows, each)
    numbers = Numbers(rows * each, dtype.itemsize, rows)
    if CODECS[name].codes(flow, numbers):
        coded = coder_of(name, flow, tensor).encode(tensor)
        assert (coded.dtype, coded.shape) == (
            torch.uint8,
            (CODECS[name].sent_bytes(flow, numbers),),
        )
        assert coded.nbytes < numbers.bytes


@pytest.mark.parametrize(("name", "flow"), WAYS)
def test_what_was_read_once_is_read_again_the_same(name, flow):
    tensor = drawn(600).view(20, 30)
    once = read_again(name, flow, tensor)
    assert (once.shape, once.dtype) == (tensor.shape, tensor.dtype)
    again = read_again(name, flow, once)
    torch.testing.assert_close(again, once, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("name", "flow"), WAYS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_stays_none(name, flow, bad):
    """Of gradients where they are sent at all."""
    tensor = torch.zeros(10, 30)
    tensor[0, 3] = bad
    if flow is Flow.GRADIENT and name.startswith("top"):
        tensor[0] = bad
    assert not read_again(name, flow, tensor)[0].isfinite().all()


OFF = {
    ("int8", Flow.ACTIVATION): 1 / 254,
    ("int8", Flow.GRADIENT): 1 / 254,
    ("int4", Flow.ACTIVATION): 1 / 14,
    ("int4", Flow.GRADIENT): 1 / 254,
    ("aq4", Flow.ACTIVATION): 1 / 14,
    ("aq4", Flow.GRADIENT): 1 / 254,
    ("aq2", Flow.ACTIVATION): 1 / 2,
    ("aq2", Flow.GRADIENT): 1 / 14,
    ("fp8", Flow.ACTIVATION): 16 / 448,
    ("fp8", Flow.GRADIENT): 4096 / 57344,
}
"""Half the widest step of a block, in its largest number."""


@pytest.mark.parametrize(("name", "flow"), OFF)
@given(
    seed=st.integers(0, 99),
    scale=st.sampled_from((1e-20, 1e-3, 1.0, 1e6)),
    count=st.integers(1, 2 * BLOCK + 5),
)
@settings(max_examples=25, deadline=None)
def test_blocks_are_off_by_half_a_step_at_most(name, flow, seed, scale, count):
    tensor = scale * drawn(count, seed=seed)
    found = read_again(name, flow, tensor)
    for block, read in zip(tensor.split(BLOCK), found.split(BLOCK), strict=True):
        assert (block - read).abs().max() <= block.abs().max() * OFF[name, flow] * (1 + 1e-5)


@pytest.mark.parametrize(("flow", "share"), [(Flow.ACTIVATION, 1 / 16), (Flow.GRADIENT, 1 / 8)])
def test_fp8_keeps_a_digit_of_numbers_far_below_the_largest(flow, share):
    """Where int8 reads nothing but zeros."""
    tensor = torch.cat((torch.tensor([1e4]), drawn(BLOCK - 1).abs() + 1))
    found = read_again("fp8", flow, tensor)
    assert ((found - tensor).abs() <= share * tensor * (1 + 1e-6)).all()
    assert not read_again("int8", flow, tensor)[1:].any()


@pytest.mark.parametrize("count", [1, 2, 15, BLOCK, BLOCK + 1])
def test_int4_reads_its_own_steps_exactly(count):
    steps = torch.arange(count, dtype=torch.float64) % 15 - 7
    steps[0] = steps[-1] = 7
    assert torch.equal(read_again("int4", Flow.ACTIVATION, steps), steps)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("name", "flow"), OFF)
def test_numbers_of_two_bytes_are_coded_from_their_values(name, flow, dtype):
    tensor = drawn(700).to(dtype)
    found = read_again(name, flow, tensor)
    assert found.dtype == dtype
    assert torch.equal(found, read_again(name, flow, tensor.float()).to(dtype))


@pytest.mark.parametrize(("name", "flow"), WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_without_numbers_go_plain(name, flow, dtype):
    assert not CODECS[name].codes(flow, Numbers(0, dtype.itemsize))


@pytest.mark.parametrize("name", CODECS)
def test_a_codec_is_close_where_it_is_off_by_less_than_a_hundredth_at_every_size(name):
    """Of the whole tensor, in both directions; only such a one is chosen without being asked."""
    off = [
        (read_again(name, flow, tensor) - tensor).norm() / tensor.norm()
        for flow in Flow
        for tensor in (scale * drawn(1 << 14).view(16, -1) for scale in (1e-3, 1.0, 1e6))
    ]
    assert CODECS[name].is_close == bool(torch.stack(off).nan_to_num(math.inf).max() < 0.01)


def test_indices_and_tensors_without_gradient_come_as_they_are():
    coding, message = Coding(("int8",)), Message(Flow.ACTIVATION, 0, 0)
    bundle = (torch.arange(500), drawn(500), drawn(500))
    specs = [TensorSpec.of(tensor) for tensor in bundle[:2]]
    specs.append(TensorSpec(bundle[2].shape, bundle[2].dtype, True))
    wire = coding.encode(message, bundle, specs)
    assert [TensorSpec.of(tensor).shape for tensor in wire] == [
        spec.shape for spec in coding.on_wire(message, specs)
    ]
    came = coding.decode(message, wire, specs)
    assert torch.equal(came[0], bundle[0])
    assert torch.equal(came[1], bundle[1])
    assert not torch.equal(came[2], bundle[2])
    assert coding.sent.coded == 500 * 8 + 500 * 4 + 500 + 2 * 4
    assert coding.sent.plain == 500 * (8 + 4 + 4)


def test_codecs_are_said_in_words():
    assert codecs_of("int8", 3) == ("int8",) * 3
    assert codecs_of("int8, none", 2) == ("int8", "")
    assert codecs_of("none", 2) == codecs_of("int8", 0) == ()
    for text in ("none", "int8", "int8,none"):
        assert write_codecs(codecs_of(text, 2)) == text
    check_wanted(AUTO)
    for wrong in ("int7", "int8,auto"):
        with pytest.raises(InvalidInput, match="there is no codec"):
            check_wanted(wrong)
    for names, cuts in ((("int8",), 2), (("int7",), 1)):
        with pytest.raises(InvalidInput):
            check_codecs(names, cuts)
    with pytest.raises(InvalidInput, match="names 3 codecs"):
        codecs_of("int8,int8,int8", 2)
