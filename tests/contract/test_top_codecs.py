"""Contract of codecs that send a part of a tensor: what is sent, how its places are told, and that
gradients come back at the same ones."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.codec import Numbers
from backend.pipeline.codecs.top import SHORT, TOP, has_map, kept_per_row, place_bytes
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.messages.coding import Coding

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def spec_of(tensor):
    return TensorSpec(tuple(tensor.shape), tensor.dtype, requires_grad=True)


def largest(tensor, count):
    """True at the `count` largest magnitudes of each row, the first of equal ones: by sorting."""
    kept = torch.zeros_like(tensor, dtype=torch.bool).view(len(tensor), -1)
    for row, found in zip(tensor.reshape(len(tensor), -1), kept, strict=True):
        sizes = [math.inf if math.isnan(each) else abs(each) for each in row.tolist()]
        found[sorted(range(len(sizes)), key=lambda place: -sizes[place])[:count]] = True
    return kept.view(tensor.shape)


def crossing(name, activation, gradient):
    """What the far end reads of both, and the bytes of each."""
    here, there = ROUND_TRIPS[name](), ROUND_TRIPS[name]()
    coded = here.of(Flow.ACTIVATION).encode(activation)
    read = there.of(Flow.ACTIVATION).decode(coded, spec_of(activation))
    back = there.of(Flow.GRADIENT).encode(gradient)
    returned = here.of(Flow.GRADIENT).decode(back, spec_of(gradient))
    return read, returned, coded.nbytes, back.nbytes


@pytest.mark.parametrize("percent", TOP)
@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 4),
    each=st.integers(1, 300),
    seed=st.integers(0, 99),
    dtype=st.sampled_from(DTYPES),
    whole=st.booleans(),
)
def test_the_largest_of_each_sample_come_exactly_and_their_gradients_alone_come_back(
    percent, rows, each, seed, dtype, whole
):
    """Whole numbers are often equal, as zeros behind a ReLU are."""
    activation, gradient = (drawn(rows, each, seed=seed + n, dtype=dtype) for n in range(2))
    if whole:
        activation = activation.round().clamp_min(0)
    numbers = Numbers(rows * each, dtype.itemsize, rows)
    kept = largest(activation, kept_per_row(numbers, percent))
    read, returned, forth, back = crossing(f"top{percent}", activation, gradient)
    assert torch.equal(read, activation.where(kept, torch.zeros_like(activation)))
    assert torch.equal(returned, gradient.where(kept, torch.zeros_like(gradient)))
    if TOP[percent].codes(Flow.ACTIVATION, numbers):
        assert forth == TOP[percent].sent_bytes(Flow.ACTIVATION, numbers)
        assert back == TOP[percent].sent_bytes(Flow.GRADIENT, numbers) < forth


@pytest.mark.parametrize(
    ("percent", "each", "mapped", "width"),
    [(10, 1000, True, 2), (5, 1000, False, 2), (5, SHORT, False, 2), (5, SHORT + 100, True, 4)],
)
def test_places_are_told_in_the_fewest_bytes(percent, each, mapped, width):
    numbers = Numbers(2 * each, 4, 2)
    assert (has_map(numbers, percent), place_bytes(numbers)) == (mapped, width)
    kept = 2 * (each * percent // 100)
    sent = kept * 4 + min(each // 4, kept * width)
    assert TOP[percent].sent_bytes(Flow.ACTIVATION, numbers) == sent
    activation, gradient = drawn(2, each), drawn(2, each, seed=1)
    read, returned, *sizes = crossing(f"top{percent}", activation, gradient)
    where = largest(activation, kept // 2)
    assert torch.equal(read, activation * where)
    assert torch.equal(returned, gradient * where)
    assert sizes == [sent, kept * 4]


def test_places_in_long_rows_take_four_bytes():
    numbers = Numbers(SHORT + 1, 8)
    activation = torch.zeros(1, SHORT + 1, dtype=torch.float64)
    activation[0, -(SHORT // 50) :] = 1.0
    assert not has_map(numbers, 3)
    read, _, sent, _ = crossing("top3", activation, activation)
    assert sent == TOP[3].sent_bytes(Flow.ACTIVATION, numbers) == (SHORT + 1) * 3 // 100 * 12
    assert torch.equal(read, activation)


def test_twenty_times_fewer_bytes_there_and_back_with_three_percent():
    numbers = Numbers(64 * 512 * 100, 4, 64)
    sent = sum(TOP[3].sent_bytes(flow, numbers) for flow in Flow)
    assert 2 * numbers.bytes / sent > 20


def test_weights_that_cross_a_cut_have_no_samples_and_go_plain():
    spec = TensorSpec((30, 40), torch.float32, requires_grad=True, is_weight=True)
    coding, weight = Coding(("top5",)), drawn(30, 40)
    for message in (Message(Flow.ACTIVATION, 0, 0), Message(Flow.GRADIENT, 1, 0)):
        coding.begin([Message(Flow.GRADIENT, 1, 0)])
        coding.encode(Message(Flow.ACTIVATION, 0, 0), (weight,), [spec])
        assert coding.on_wire(message, [spec]) == (spec,)
    assert torch.equal(coding.encode(message, (weight,), [spec])[0], weight)
    assert not TOP[5].codes(Flow.GRADIENT, Numbers(1200, 4, 0))


@given(order=st.permutations(range(4)), with_index=st.booleans())
@settings(max_examples=30, deadline=None)
def test_each_microbatch_in_flight_has_its_own_places(order, with_index):
    """Of several tensors, some without gradient; whichever gradient comes first."""
    here, there = Coding(("", "top10")), Coding(("", "top10"))
    messages = [Message(flow, stage, k) for k in range(4) for flow, stage in _WAYS]
    for end in (here, there):
        end.begin(messages)
    specs = [TensorSpec((3, 40), torch.float32, True), TensorSpec((3, 7, 5), torch.float32, True)]
    specs[1:1] = [TensorSpec((3, 40), torch.int64, False)] * with_index
    kept = {}
    for k in range(4):
        bundle = tuple(
            drawn(*spec.shape, seed=10 * k + n).to(spec.dtype) for n, spec in enumerate(specs)
        )
        message = Message(Flow.ACTIVATION, 1, k)
        read = there.decode(message, here.encode(message, bundle, specs), specs)
        kept[k] = [each != 0 for each, spec in zip(read, specs, strict=True) if spec.requires_grad]
        assert torch.equal(kept[k][0], largest(bundle[0], 4))
    backs = [spec for spec in specs if spec.requires_grad]
    for k in order:
        message = Message(Flow.GRADIENT, 2, k)
        gradients = tuple(drawn(*spec.shape, seed=99 + k) for spec in backs)
        wire = there.encode(message, gradients, backs)
        assert [each.nbytes for each in wire] == [
            spec.num_bytes for spec in here.on_wire(message, backs)
        ]
        found = here.decode(message, wire, backs)
        for each, whole, where in zip(found, gradients, kept[k], strict=True):
            assert torch.equal(each, whole * where)
    assert not here.begun
    assert not there.begun


_WAYS = ((Flow.ACTIVATION, 1), (Flow.GRADIENT, 2))


def test_an_evaluation_sends_the_same_part_and_remembers_nothing():
    coding, tensor = Coding(("top10",)), drawn(4, 50)
    message, specs = Message(Flow.ACTIVATION, 0, 0), [spec_of(tensor)]
    coding.begin([message])
    coded = coding.encode(message, (tensor,), specs)
    assert not coding.begun
    coding.begin([message, Message(Flow.GRADIENT, 1, 0)])
    assert torch.equal(coding.encode(message, (tensor,), specs)[0], coded[0])
    assert len(coding.begun) == 1
    coding.begin([])
    assert not coding.begun
