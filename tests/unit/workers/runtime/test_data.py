"""Which samples a microbatch holds, and the data sets by name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.runs.spec import DataSpec
from workers.runtime import data
from workers.runtime.data import Epoch

NUMBERS = (torch.arange(50), torch.arange(50) * 10)


def samples(epoch: Epoch) -> list[int]:
    return [int(x) for k in range(epoch.microbatches) for x in epoch.inputs(k)]


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 500), st.integers(1, 7))
def test_a_shuffle_is_a_function_of_seed_and_epoch(seed: int, number: int, size: int) -> None:
    count = 50 // size
    epoch = Epoch.shuffled(NUMBERS, size, count, seed, number)
    again = Epoch.shuffled(NUMBERS, size, count, seed, number)
    assert samples(epoch) == samples(again)
    assert len(set(samples(epoch))) == size * count
    assert all(torch.equal(epoch.targets(k), epoch.inputs(k) * 10) for k in range(count))


def test_epochs_and_seeds_differ_and_so_do_the_samples_left_over() -> None:
    orders = [samples(Epoch.shuffled(NUMBERS, 8, 6, s, e)) for s in (0, 1) for e in (0, 1, 2)]
    assert len({tuple(order) for order in orders}) == 6
    assert len({frozenset(range(50)) - set(order) for order in orders}) == 6


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 9), st.integers(0, 4))
def test_in_order_holds_every_sample_once_and_pads(count: int, size: int, more: int) -> None:
    inputs = torch.arange(count)
    microbatches = -(-count // size) + more
    epoch = Epoch.in_order((inputs, inputs), size, microbatches)
    real = [epoch.num_real(k) for k in range(microbatches)]
    assert sum(real) == count
    kept = [int(x) for k in range(microbatches) for x in epoch.inputs(k)[: real[k]]]
    assert kept == list(range(count))
    assert all(len(epoch.inputs(k)) == size for k in range(microbatches))


def test_digits_are_split_the_same_way_every_time(zoo) -> None:
    one, two = (data.load(DataSpec("digits"), zoo("mlp")) for _ in range(2))
    assert one.train[0].shape == (1437, 1, 8, 8)
    assert one.held_out[0].shape == (360, 1, 8, 8)
    assert torch.equal(one.train[0], two.train[0])
    assert (float(one.train[0].min()), float(one.train[0].max())) == (0.0, 1.0)
    counts = torch.bincount(one.held_out[1])
    assert len(counts) == 10
    assert int(counts.max() - counts.min()) <= 3


def test_synthetic_is_as_large_as_asked_and_leaves_the_generator_alone(zoo) -> None:
    state = torch.get_rng_state()
    one, two = (data.load(DataSpec("synthetic", 40), zoo("mlp")) for _ in range(2))
    assert (len(one.train[0]), len(one.held_out[0])) == (40, 10)
    assert torch.equal(one.train[0], two.train[0])
    assert torch.equal(torch.get_rng_state(), state)


def test_the_definitions_own_default(zoo) -> None:
    assert data.load(DataSpec(), zoo("mlp")).train[0].shape == (1437, 1, 8, 8)
    assert data.load(DataSpec(), zoo("gpt_tiny")).train[0].shape[1:] == (64,)


def test_an_unknown_name_lists_those_there_are(zoo) -> None:
    with pytest.raises(InvalidInput, match="no data set 'imagenet'") as raised:
        data.load(DataSpec("imagenet"), zoo("mlp"))
    assert "definition, digits, synthetic" in raised.value.advice


def test_an_example_comes_from_the_data_where_there_is_no_other(define) -> None:
    definition = define('DATA = "digits"\ndef model(): return nn.Flatten()')
    inputs, targets = data.example(definition, 3)
    assert inputs.shape == (3, 1, 8, 8)
    assert len(targets) == 3
