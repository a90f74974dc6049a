"""An epoch is a function of its seed and number, wherever it begins."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.runtime.samples.epoch import Epoch

NUMBERS = TensorSplit(torch.arange(50), torch.arange(50) * 10)
CPU = torch.device("cpu")


def samples(epoch: Epoch) -> list[int]:
    rest = range(len(epoch.groups) - epoch.first)
    return [int(x) for k in rest for x in epoch.inputs(k)]


@given(st.integers(0, 10**6), st.integers(0, 500), st.integers(1, 7), st.booleans())
def test_a_shuffle_is_a_function_of_seed_and_epoch(
    seed: int, number: int, size: int, keep: bool
) -> None:
    cutting = Cutting(size, keep=keep)
    epoch, again = (Epoch.shuffled(NUMBERS, cutting, seed, number) for _ in range(2))
    assert samples(epoch) == samples(again)
    assert len(set(samples(epoch))) == (50 if keep else 50 // size * size)
    for k in range(len(epoch.groups)):
        assert torch.equal(epoch.targets(k), epoch.inputs(k) * 10)
        assert epoch.share(k) == len(epoch.inputs(k)) / size
        assert epoch.form(k) == (len(epoch.inputs(k)), None)


@given(st.integers(0, 9), st.integers(0, 10))
def test_it_goes_on_from_any_microbatch(number: int, first: int) -> None:
    whole = Epoch.shuffled(NUMBERS, Cutting(4), 1, number)
    rest = Epoch.shuffled(NUMBERS, Cutting(4), 1, number, first)
    assert samples(rest) == samples(whole)[4 * first :]
    assert all(map(torch.equal, rest.bundle(0, CPU), whole.bundle(first, CPU)))
    assert torch.equal(rest.answers(1, CPU), whole.answers(first + 1, CPU))


def test_epochs_and_seeds_differ_and_so_do_the_samples_left_over() -> None:
    cutting = Cutting(8)
    orders = [samples(Epoch.shuffled(NUMBERS, cutting, s, e)) for s in (0, 1) for e in (0, 1, 2)]
    assert len({tuple(order) for order in orders}) == 6
    assert len({frozenset(range(50)) - set(order) for order in orders}) == 6


def test_in_order_tells_padding_apart() -> None:
    epoch = Epoch.in_order(NUMBERS, Cutting(8, unit=4))
    assert [epoch.num_real(k) for k in range(8)] == [8] * 6 + [2, 0]
    assert samples(epoch)[:50] == list(range(50))
