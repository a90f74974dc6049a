"""Of the gradients of replicas the largest are sent, and the rest is kept: nothing is lost."""

from threading import Barrier, Thread

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from backend.planning.thresholds import LEAST, Thresholds
from tests.unit.workers.runtime.state.peers import Thereby
from workers.runtime.messages.thresholds import ThresholdSums

SIZES = {"matrix": (40, 50), "bias": (LEAST - 1,), "wide": (3, 301)}
Tensors = dict[str, Tensor]


def weights(sizes=SIZES) -> Tensors:
    return {name: torch.zeros(size) for name, size in sizes.items()}


def draw(seed: int, sizes=SIZES) -> Tensors:
    torch.manual_seed(seed)
    return {name: torch.randn(size) for name, size in sizes.items()}


def summed(replicas: list[ThresholdSums], gradients: list[Tensors]) -> list[int]:
    """All replicas at once, each with its own gradients, in whose place the sums come; the bytes
    that each broadcast."""
    barrier, table = Barrier(len(replicas)), {}
    peers = [Thereby(place, barrier, table) for place in range(len(replicas))]
    threads = [
        Thread(target=each.sum, args=([own], peer))
        for each, own, peer in zip(replicas, gradients, peers, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [peer.sent for peer in peers]


class Reference:
    """The paper's rule, a tensor at a time."""

    def __init__(self, codec: Thresholds, count: int) -> None:
        self.codec, self.updates = codec, 0
        self.errors = [weights() for _ in range(count)]
        self.bounds: list[Tensors] = [{} for _ in range(count)]

    def sums(self, gradients: list[Tensors]) -> Tensors:
        found = {}
        for name in SIZES:
            total = torch.zeros(SIZES[name])
            for errors, bounds, own in zip(self.errors, self.bounds, gradients, strict=True):
                value = own[name] + errors[name]
                if value.numel() < LEAST:
                    total = total + value
                    continue
                if self.updates % self.codec.every == 0:
                    kept = max(1, int(value.numel() * self.codec.keep))
                    bounds[name] = value.abs().flatten().sort(descending=True).values[kept - 1]
                mask = value.abs() >= bounds[name]
                total = total + value * mask
                errors[name] = value * ~mask
            found[name] = total
        self.updates += 1
        return found


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("codec", [Thresholds(0.02, 3), Thresholds(0.2, 1), Thresholds(1e-6, 4)])
def test_replicas_sum_as_the_rule_says(count: int, codec: Thresholds) -> None:
    replicas = [ThresholdSums(codec, weights()) for _ in range(count)]
    reference = Reference(codec, count)
    for update in range(7):
        gradients = [draw(100 * update + place) for place in range(count)]
        expected = reference.sums(gradients)
        summed(replicas, gradients)
        for own in gradients:  # equal to the last bit at all
            assert all(torch.equal(own[name], expected[name]) for name in SIZES)
    for each, errors in zip(replicas, reference.errors, strict=True):
        unsent = each.state["unsent"]
        assert set(unsent) == {"matrix", "wide"}
        assert all(torch.equal(unsent[name], errors[name]) for name in unsent)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.floats(0.001, 0.4),
    st.integers(1, 4),
)
def test_nothing_is_lost(seed: int, replicas: int, keep: float, every: int) -> None:
    """Each number goes whole or stays whole: what was sent and what waits is what there was."""
    coders = [ThresholdSums(Thresholds(keep, every), weights()) for _ in range(replicas)]
    for update in range(4):
        before = [dict(each.state["unsent"]) for each in coders]
        before = [{n: e.clone() for n, e in each.items()} for each in before]
        given = [draw(seed + 10 * update + place) for place in range(replicas)]
        gradients = [{n: g.clone() for n, g in own.items()} for own in given]
        summed(coders, gradients)
        for name in ("matrix", "wide"):
            total = torch.zeros(SIZES[name])
            for own, old, each in zip(given, before, coders, strict=True):
                there, unsent = own[name] + old[name], each.state["unsent"][name]
                gone = unsent == 0
                assert torch.equal(unsent[~gone], there[~gone])
                total = total + there * gone
            assert torch.equal(gradients[0][name], total)


def test_as_many_are_sent_as_are_kept_when_thresholds_are_made() -> None:
    codec, sizes = Thresholds(0.01, 2), {"matrix": (40, 50), "wide": (3, 301)}
    replicas = [ThresholdSums(codec, weights(sizes)) for _ in range(2)]
    for update in range(3):
        sent = summed(replicas, [draw(update, sizes), draw(50 + update, sizes)])
        if update % 2 == 0:
            assert sent == [8 * (20 + 9)] * 2
    counted = replicas[0].sent
    assert counted.plain == 3 * 2903 * 4
    assert counted.coded >= 2 * 8 * 29


def test_all_kept_is_the_plain_sum() -> None:
    replicas = [ThresholdSums(Thresholds(1.0), weights()) for _ in range(2)]
    for update in range(3):
        gradients = [draw(update), draw(9 + update)]
        plain = {name: gradients[0][name] + gradients[1][name] for name in SIZES}
        summed(replicas, gradients)
        assert all(torch.equal(gradients[1][name], plain[name]) for name in SIZES)
    assert not any(e.any() for e in replicas[0].state["unsent"].values())
    assert replicas[0].sent.coded == replicas[0].sent.plain


def test_zeros_are_never_sent() -> None:
    """Of an embedding most rows have no gradient, and the threshold may be 0."""
    coder, own = ThresholdSums(Thresholds(0.5), weights()), draw(0)
    own["matrix"][1:] = 0
    own["wide"].zero_()
    [sent] = summed([coder], [own])
    assert sent == 8 * 50
    assert coder.sent.coded == 0  # there is nobody else


def test_what_is_no_number_is_told() -> None:
    coders = [ThresholdSums(Thresholds(0.01, 5), weights()) for _ in range(2)]
    summed(coders, [draw(1), draw(2)])
    gradients = [draw(3), draw(4)]
    gradients[0]["matrix"][7, 7] = float("nan")
    summed(coders, gradients)
    assert gradients[1]["matrix"][7, 7].isnan()
    assert not coders[0].state["unsent"]["matrix"].isnan().any()


def test_it_goes_on_from_its_state() -> None:
    codec = Thresholds(0.05, 3)
    whole = [ThresholdSums(codec, weights()) for _ in range(2)]
    for update in range(2):
        summed(whole, [draw(update), draw(20 + update)])
    resumed = [ThresholdSums(codec, weights()) for _ in range(2)]
    for old, new in zip(whole, resumed, strict=True):
        copies = {k: {n: t.clone() for n, t in kind.items()} for k, kind in old.state.items()}
        new.load_state(copies, 2)
    for update in range(2, 6):
        one, other = [[draw(update), draw(20 + update)] for _ in range(2)]
        summed(whole, one)
        summed(resumed, other)
        assert all(torch.equal(one[0][name], other[0][name]) for name in SIZES)
