"""Weights side by side: of one dtype, and in equal shards that are cut where vectors end."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.runtime.messages.bucket import ALIGNED, bucket_of, portions

CPU = torch.device("cpu")


def test_portions_are_of_one_dtype_and_each_weight_is_in_one() -> None:
    """Biases between matrices do not make a bucket of each."""
    held = {f"{n}": torch.zeros((8, 8) if n % 2 else (8,)) for n in range(40)}
    mixed = {name: w.bfloat16() if w.dim() > 1 else w for name, w in held.items()}
    found = portions(mixed, 1000)
    assert sorted(name for part in found for name in part) == sorted(held)
    assert all(len({weight.dtype for weight in part.values()}) == 1 for part in found)
    assert len(found) == 20 * 128 // 1024 + 1 + 1
    alone = portions({name: w.bfloat16() for name, w in held.items()}, 10_000)
    assert [len(part) for part in alone] == [40, 0]


@given(
    sizes=st.lists(st.integers(0, 200), max_size=6),
    replicas=st.integers(1, 4),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_shards_are_equal_and_hold_every_number_once(sizes, replicas, dtype):
    held = {f"{n}": torch.full((size,), n + 1.0).to(dtype) for n, size in enumerate(sizes)}
    bucket = bucket_of(held, CPU, replicas)
    for name, weight in held.items():
        bucket.parts[name].copy_(weight)
    numbers = bucket.flat[:-1]
    assert len(numbers) == replicas * bucket.shard
    assert sorted(numbers[numbers > 0].tolist()) == sorted(
        torch.cat([*held.values()]).tolist() if held else []
    )
    for name, first in bucket.firsts.items():
        assert torch.equal(numbers[first : first + held[name].numel()], held[name])
    if replicas == 1:
        assert len(numbers) == sum(sizes)
        return
    places = [*bucket.firsts.values(), bucket.shard]
    dtype = next(iter(held.values())).dtype if held else torch.float32
    assert not any(place * dtype.itemsize % ALIGNED for place in places)
    wasted = len(numbers) - sum(sizes)
    assert wasted * dtype.itemsize < ALIGNED * (len(sizes) + replicas)
