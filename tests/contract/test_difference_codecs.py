"""Contract of codecs that send what has changed in a sample: both ends keep the same, the first
time all is read exactly, and later nothing is read farther away than what was kept."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.blocks import BLOCK
from backend.pipeline.codecs.catalog import CODECS
from backend.pipeline.codecs.codec import Numbers
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.coding import Coding

KEEPING = [name for name, codec in CODECS.items() if codec.keeps_samples]
FORTH, BACK = Message(Flow.ACTIVATION, 0, 0), Message(Flow.GRADIENT, 1, 0)
STEPS = {"aq4": 14, "aq2": 2}
"""A number is off by the largest change of its block over this at most."""


def spec_of(tensor, **more):
    return TensorSpec(tuple(tensor.shape), tensor.dtype, requires_grad=True, **more)


class Ends:
    """A cut with a codec, and what the far end reads of a microbatch of these samples."""

    def __init__(self, name):
        self.name, self.here, self.there = name, Coding((name,)), Coding((name,))

    def reads(self, samples, *bundle, specs=None):
        specs = specs or [spec_of(each) for each in bundle]
        for end in (self.here, self.there):
            end.expect(None if samples is None else lambda _: samples)
            end.begin([FORTH])
        expected = self.there.on_wire(FORTH, specs)
        coded = self.here.encode(FORTH, bundle, specs)
        assert [(c.shape, c.dtype) for c in coded] == [(e.shape, e.dtype) for e in expected]
        self.sent = [each.nbytes for each in coded]
        read = self.there.decode(FORTH, coded, specs)
        assert same(self.here.state(0), self.there.state(0))
        return read


def same(one, other):
    """To the last bit, what is no number too."""
    pairs = ((one[key].view(torch.uint8), other[key].view(torch.uint8)) for key in one)
    return one.keys() == other.keys() and all(torch.equal(*pair) for pair in pairs)


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("name", KEEPING)
@settings(max_examples=30, deadline=None)
@given(
    epochs=st.lists(st.permutations(range(6)), min_size=2, max_size=4),
    used=st.integers(3, 6),
    each=st.integers(9, BLOCK + 9),
    dtype=st.sampled_from((torch.float32, torch.float64, torch.bfloat16)),
)
def test_samples_are_exact_the_first_time_and_come_nearer_later(name, epochs, used, each, dtype):
    """In microbatches of up to 3, of as many samples of an epoch as are used."""
    ends, kept = Ends(name), {}
    for number, order in enumerate(epochs):
        for first in range(0, used, 3):
            samples = order[first : min(used, first + 3)]
            tensor = drawn(len(samples), each, seed=7 * number + first, dtype=dtype)
            (read,) = ends.reads(samples, tensor)
            new = sum(sample not in kept for sample in samples)
            numbers = Numbers(tensor.numel(), dtype.itemsize, len(samples), new=new)
            assert ends.sent == [CODECS[name].sent_bytes(Flow.ACTIVATION, numbers)]
            for sample, row, mine in zip(samples, tensor, read, strict=True):
                if sample not in kept:
                    assert torch.equal(mine, row)
                else:
                    was, off = (row.double() - m.double() for m in (kept[sample], mine))
                    rounding = torch.finfo(dtype).eps * (mine.abs().double() + 1)
                    assert (off.abs() <= was.abs() + rounding).all()
                kept[sample] = mine.clone()


@pytest.mark.parametrize("name", KEEPING)
@given(seed=st.integers(0, 99), scale=st.sampled_from((1e-3, 1.0, 1e6)))
@settings(max_examples=20, deadline=None)
def test_what_no_longer_changes_is_read_exactly_in_the_end(name, seed, scale):
    """Each time the largest error becomes a step of the one before, whatever the first one was."""
    ends, before = Ends(name), scale * drawn(4, 50, seed=seed, dtype=torch.float64)
    after = scale * drawn(4, 50, seed=seed + 100, dtype=torch.float64)
    ends.reads(range(4), before)
    most = (after - before).abs().max()
    for _ in range(5):
        (read,) = ends.reads(range(4), after)
        assert (read - after).abs().max() <= most / STEPS[name] * (1 + 1e-6)
        most = (read - after).abs().max()
    assert most <= (after - before).abs().max() / STEPS[name] ** 5 * (1 + 1e-5)


@pytest.mark.parametrize("name", KEEPING)
def test_held_out_samples_go_plain_and_leave_nothing(name):
    ends, tensor = Ends(name), drawn(4, 50)
    ends.reads(range(4), tensor)
    kept = ends.here.state(0)
    (read,) = ends.reads(None, tensor + 1)
    assert torch.equal(read, tensor + 1)
    assert ends.sent == [tensor.nbytes]
    assert same(ends.here.state(0), kept)


@pytest.mark.parametrize("name", KEEPING)
def test_tensors_whose_rows_are_not_the_samples_go_plain(name):
    """A weight, and a tensor that has other rows, beside one that is coded."""
    ends, bundle = Ends(name), (drawn(4, 40), drawn(8, 40), drawn(4, 40))
    specs = [spec_of(bundle[0], is_weight=True), *map(spec_of, bundle[1:])]
    for _ in range(2):
        read = ends.reads(range(4), *bundle, specs=specs)
        assert torch.equal(read[0], bundle[0])
        assert torch.equal(read[1], bundle[1])
    assert ends.sent[:2] == [each.nbytes for each in bundle[:2]]
    assert ends.sent[2] < bundle[2].nbytes / 7
    assert {key.partition("/")[0] for key in ends.here.state(0)} == {"2"}


@pytest.mark.parametrize("name", KEEPING)
def test_both_ends_go_on_from_what_one_of_them_kept(name):
    """Samples of two lengths, as two buckets have them."""
    ends, other = Ends(name), Ends(name)
    for seed in range(2):
        ends.reads(range(3), drawn(3, 40, seed=seed))
        ends.reads(range(3, 5), drawn(2, 60, seed=seed))
    for end in (other.here, other.there):
        end.load_state(0, ends.here.state(0))
    assert same(other.here.state(0), ends.here.state(0))
    for samples, tensor in ((range(3), drawn(3, 40, seed=5)), ([4], drawn(1, 60, seed=6))):
        (read,) = ends.reads(samples, tensor)
        (again,) = other.reads(samples, tensor)
        assert torch.equal(read, again)
        assert other.sent == ends.sent
        assert ends.sent[0] < tensor.nbytes / 7
    Coding(("int8",)).load_state(0, ends.here.state(0))  # who keeps nothing leaves it


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_seen(name, bad):
    ends, tensor = Ends(name), drawn(3, 40)
    ends.reads(range(3), tensor)
    tensor[1, 3] = bad
    (read,) = ends.reads(range(3), tensor)
    assert not read.isfinite().all()


@pytest.mark.parametrize("name", KEEPING)
def test_gradients_are_coded_the_first_time_too(name):
    ends, tensor = Ends(name), drawn(4, 200)
    specs = [spec_of(tensor)]
    for end in (ends.here, ends.there):
        end.expect(lambda _: range(4))
        end.begin([FORTH, BACK])
    ends.there.decode(FORTH, ends.here.encode(FORTH, (tensor,), specs), specs)
    (coded,) = ends.there.encode(BACK, (tensor,), specs)
    assert coded.nbytes == CODECS[name].sent_bytes(Flow.GRADIENT, Numbers(800, 4, 4))
    assert coded.nbytes < tensor.nbytes / 3
    (read,) = ends.here.decode(BACK, (coded,), specs)
    assert 0 < (read - tensor).norm() < 0.2 * tensor.norm()


@pytest.mark.parametrize("name", KEEPING)
def test_a_stage_knows_what_it_keeps_of_a_sample(name):
    specs = [spec_of(drawn(4, 200)), spec_of(drawn(8, 10)), TensorSpec((4,), torch.int64, False)]
    assert Coding((name, "int8")).kept_per_sample(0, specs, 4) == 800
    assert Coding((name, "int8")).kept_per_sample(1, specs, 4) == 0
