"""What a model keeps between forwards is kept whole, left alone or named, and never baked in."""

import random

import numpy as np
import pytest
import torch
from torch import fx, nn
from torch.func import functional_call

from tests.unit.workers.definitions.linears import Linears, names, of
from workers.definitions.cut import cut
from workers.definitions.layering import layered
from workers.definitions.module_state.keepers import check_keepers
from workers.definitions.prepare import prepare


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_a_submodule_that_counts_is_kept_whole_and_goes_on_counting() -> None:
    class Outer(Linears):
        def __init__(self):
            super().__init__()
            self.count = Counting()

        def forward(self, x):
            return self.b(self.count(self.a(x)))

    found = of(Outer())
    assert names(found) == ["a", "count", "b"]
    assert "count is kept whole, because its forward changes count.calls" in found.notes[0]
    counting, x = cut(found, 1, 2), torch.rand(3, 4)
    assert [torch.equal(counting(x)[0], x * number) for number in (1, 2, 3)] == [True] * 3


def test_a_recurrent_layer_s_lists_of_its_weights_are_no_state() -> None:
    """torch leaves what `functional_call` lends the layer in them."""

    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.lstm = nn.Linear(4, 4), nn.LSTM(4, 4, batch_first=True)

        def forward(self, x):
            weight = nn.functional.dropout(self.lstm.weight_hh_l0, 0.5, self.training)
            return functional_call(self.lstm, {"weight_hh_l0": weight}, (self.first(x),))[0]

    assert not [note for note in of(Dropping(), 2, 3, 4).notes if "_flat_weights" in note]


def test_an_attribute_that_is_only_written_is_no_reason() -> None:
    class Noting(Linears):
        def forward(self, x):
            self.last = self.a(x)
            self.size = 4
            return self.b(self.last)

    assert names(of(Noting())) == ["a", "b"]


class Measured(nn.Module):
    """Leaves a measure of what it made, which is another in training than in evaluation."""

    def __init__(self, reads: bool = False) -> None:
        super().__init__()
        self.inner, self.drop, self.reads = nn.Linear(4, 4), nn.Dropout(0.5), reads
        self.measure = torch.ones(())

    def forward(self, x):
        x = self.drop(self.inner(x)) * (self.measure if self.reads else 1)
        self.measure = x.pow(2).mean()
        return x


class Summed(nn.Module):
    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Measured(), Measured(reads))
        self.shape = nn.Linear(4, 4)

    def forward(self, x):
        y = self.shape(self.blocks(x))
        y[:, 0] = 0  # stand-ins do not pass
        return y, sum(block.measure for block in self.blocks)


def test_what_blocks_leave_for_the_model_is_read_there() -> None:
    found = of(Summed(reads=False))
    assert found.tracing == "captured"
    assert {"blocks.0.inner", "blocks.1.inner", "shape"} <= {*names(found)}


def test_what_an_earlier_forward_left_is_not_taken_for_its_own() -> None:
    found = of(Summed(reads=True))
    assert names(found) == ["Summed"]
    assert "measure" in found.notes[0]


def test_what_a_whole_submodule_leaves_for_the_model_is_named() -> None:
    class Leaving(Counting):
        left = None

        def forward(self, x):
            self.left = super().forward(x)
            return self.left

    class Outer(Linears):
        def __init__(self):
            super().__init__()
            self.leaving = Leaving()

        def forward(self, x):
            return self.leaving(self.a(x)) + self.leaving.left.sum()

    (note,) = of(Outer()).notes
    assert "it may read leaving.calls, leaving.left" in note
    assert "Let the submodule return what others read of it" in note


def test_what_the_first_forward_alone_does_is_named() -> None:
    class Settling(Linears):
        ready = False

        def forward(self, x):
            if not self.ready:
                self.table, self.ready = torch.arange(4.0), True
            return self.b(self.a(x) + self.table)

    found = of(Settling())
    assert names(found) == ["Settling"]
    assert "its forward changes table, ready, which no trace sees" in found.notes[0]


@pytest.mark.parametrize("draw", [random.random, lambda: torch.rand(1).item()])
def test_a_choice_by_random_numbers_is_not_baked_in(draw) -> None:
    class Choosing(Linears):
        def forward(self, x):
            x = self.a(x)
            return self.b(x) if draw() < 0.5 else self.c(x)

    found = of(Choosing())
    assert len(found.layers) == 1
    assert "cannot be cut" in found.notes[0]


def test_a_constant_that_the_forward_changes_is_made_anew_each_time() -> None:
    class Adding(Linears):
        def forward(self, x):
            total = torch.zeros(4)
            total.add_(self.a(x).sum(0))
            return self.b(x) + total

    model, x = Adding(), torch.rand(3, 4)
    found = layered(model, x)
    whole = cut(found, 0, len(found.layers))
    assert torch.equal(whole(x), whole(x))
    assert torch.allclose(whole(x), model(x))


def test_operations_that_draw_from_one_generator_stay_together() -> None:
    class Noisy(Linears):
        def __init__(self):
            super().__init__()
            self.own = torch.Generator().manual_seed(1)

        def forward(self, x):
            x = self.a(x)
            x = self.b(x + torch.randn(x.shape, generator=self.own))
            return self.c(x + torch.randn(x.shape, generator=self.own))

    assert names(of(Noisy())) == ["a", "b", "add", "c"]


def test_what_two_submodules_keep_together_is_not_parted() -> None:
    class Sharing(nn.Module):
        def __init__(self, counts):
            super().__init__()
            self.counts = counts

        def forward(self, x):
            self.counts.append(1)
            return x * len(self.counts)

    class Outer(Linears):
        def __init__(self):
            super().__init__()
            counts = []
            self.one, self.two = Sharing(counts), Sharing(counts)

        def forward(self, x):
            return self.b(self.two(self.a(self.one(x))))

    model, x = Outer(), torch.rand(3, 4)
    assert "a cut could split" in of(model).notes[0]
    graph = fx.Graph()
    part = graph.call_module("one", (graph.placeholder("x"),))
    graph.output(graph.call_module("two", (part,)))
    with pytest.raises(ValueError, match="counts"):
        check_keepers(model, graph, (x,))
    assert not model.one.counts


def test_a_submodule_that_counts_and_is_called_twice_is_not_parted() -> None:
    class Outer(Linears):
        def __init__(self):
            super().__init__()
            self.count = Counting()

        def forward(self, x):
            return self.count(self.b(self.count(self.a(x))))

    assert len(of(Outer()).layers) == 1


def test_a_model_of_one_layer_names_what_checkpoints_do_not_hold(define) -> None:
    definition = define(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.calls = nn.BatchNorm1d(4), 0
            def forward(self, x):
                self.calls += 1
                return self.a(x) * self.calls
        def model(): return Net()
        def example(n): return torch.rand(n, 4), torch.randint(4, (n,))
        """
    )
    found = prepare(definition, definition.example(3))
    assert "A forward changes calls, which no buffer keeps" in found.notes[1]
    assert found.model.calls == 0


@pytest.mark.parametrize("name", ["gpt_tiny", "resnet_digits", "awd_lm"])
def test_random_numbers_after_probing_are_those_after_building(small_zoo, name: str) -> None:
    definition = small_zoo(name)
    batch = definition.example(2)
    drawn = []
    for make in (definition.model, lambda seed: prepare(definition, batch, seed)):
        make(3)
        drawn.append((random.random(), np.random.rand(), torch.rand(3).tolist()))
    assert drawn[0] == drawn[1]
