"""Which samples a microbatch holds: everything once, whole rounds, one bucket at a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.data.cutting import Cutting
from workers.data.errors import DataFailed
from workers.data.ragged import Ragged
from workers.data.split import TensorSplit, divided

COUNTS = st.integers(1, 60)
SIZES = st.integers(1, 7)
UNITS = st.integers(1, 5)


def held(count: int) -> TensorSplit:
    return TensorSplit(torch.arange(count), torch.arange(count) * 10)


def ragged(lengths: list[int]) -> Ragged:
    each = [torch.full((length,), number) for number, length in enumerate(lengths)]
    return Ragged(each, [sample * 10 for sample in each])


def order(count: int) -> torch.Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(count))


@given(COUNTS, SIZES, UNITS)
def test_without_a_smaller_last_round_all_microbatches_are_full(
    count: int, size: int, unit: int
) -> None:
    groups = Cutting(size, unit).groups(held(count), order(count), None)
    assert all(len(group) == size and length is None for group, length in groups)
    assert len(groups) == count // (size * unit) * unit
    assert len({int(n) for group, _ in groups for n in group}) == size * len(groups)


@given(COUNTS, SIZES, UNITS)
def test_a_kept_last_round_leaves_out_fewer_than_a_sample_per_microbatch(
    count: int, size: int, unit: int
) -> None:
    cutting = Cutting(size, unit, keep=True)
    sizes = [len(group) for group, _ in cutting.groups(held(count), order(count), None)]
    assert len(sizes) % unit == 0
    assert len(sizes) == cutting.count(held(count))
    assert count - unit < sum(sizes) <= count
    assert sizes == sorted(sizes, reverse=True)
    assert all(size == full for full in sizes[:-unit])
    assert not sizes or max(sizes[-unit:]) - min(sizes[-unit:]) <= 1
    assert min(sizes, default=1) >= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), SIZES, UNITS, st.booleans())
def test_a_microbatch_holds_samples_of_one_bucket(
    lengths: list[int], size: int, unit: int, keep: bool
) -> None:
    part, cutting = ragged(lengths), Cutting(size, unit, keep, (3, 6, 9))
    generator = torch.Generator().manual_seed(1)
    groups = cutting.groups(part, order(len(part)), generator)
    for group, bound in groups:
        assert bound in cutting.buckets
        assert {
            0 if length <= 3 else 1 if length <= 6 else 2 for length in part.lengths[group]
        } == {cutting.buckets.index(bound)}
        inputs = part.inputs(group, bound)
        assert inputs.shape == (len(group), bound)
        assert keep or len(group) == size
    assert len(groups) == cutting.count(part)
    assert len(groups) % unit == 0
    taken = [int(n) for group, _ in groups for n in group]
    assert len(taken) == len(set(taken))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), SIZES, UNITS, st.booleans())
def test_to_evaluate_every_sample_comes_once_in_full_microbatches(
    lengths: list[int], size: int, unit: int, is_ragged: bool
) -> None:
    part = ragged(lengths) if is_ragged else held(len(lengths))
    padded = Cutting(size, unit, buckets=(4, 9)).padded(part)
    assert len(padded) % unit == 0
    assert all(len(group) == size for (group, _), _ in padded)
    real = [int(n) for (group, _), count in padded for n in group[:count]]
    assert sorted(real) == list(range(len(lengths)))


def test_lengths_without_a_bucket_are_named() -> None:
    part = ragged([2, 9, 5])
    with pytest.raises(DataFailed, match="samples are 2 to 9 long") as raised:
        Cutting(1).count(part)
    assert "4 and 9" in raised.value.advice
    with pytest.raises(DataFailed, match="1 samples are longer than the last bucket of 5"):
        Cutting(1, buckets=(5,)).count(part)


def test_padding_is_zero_before_the_model_and_left_out_of_the_loss() -> None:
    part = ragged([1, 3])
    numbers = torch.tensor([1, 0])
    assert part.inputs(numbers, 4).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0]]
    assert part.targets(numbers, 4).tolist() == [[10, 10, 10, -100], [0, -100, -100, -100]]


@given(st.integers(1, 60), st.floats(0, 0.99))
def test_a_share_is_held_out_and_something_is_left_to_learn(count: int, share: float) -> None:
    found = divided(held(count), share, "numbers")
    assert found.num_train >= 1
    assert found.num_train + found.num_held_out == count
    kept = found.train.inputs(torch.arange(found.num_train))
    out = found.held_out.inputs(torch.arange(found.num_held_out)) if found.held_out else kept[:0]
    assert sorted([*kept.tolist(), *out.tolist()]) == list(range(count))
