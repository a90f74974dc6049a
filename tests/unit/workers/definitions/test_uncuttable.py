"""What a forward does besides plain operations, and what is then kept whole."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from tests.unit.workers.definitions.linears import Linears, names, of
from workers.definitions.cut import cut
from workers.definitions.layering import layered
from workers.definitions.module_state.untouched import untouched
from workers.definitions.tracing.reasons import reason_of


def test_a_branch_on_values_makes_one_layer_with_a_note() -> None:
    class Branch(Linears):
        def forward(self, x):
            return self.a(x) if x.sum() > 0 else self.b(x)

    model = of(Branch())
    assert names(model) == ["Branch"]
    assert model.layers[0].parameter_bytes == 3 * 20 * 4
    assert "one layer and cannot be cut" in model.notes[0]


def test_a_branch_in_a_submodule_keeps_that_submodule_whole() -> None:
    class Branch(Linears):
        def forward(self, x):
            return self.a(x) if x.sum() > 0 else self.b(x)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.branch = nn.Linear(4, 4), Branch()

        def forward(self, x):
            return self.branch(self.first(x))

    model = of(Outer())
    assert names(model) == ["first", "branch"]
    assert "kept whole" in model.notes[0]


def test_a_forward_that_does_something_else_in_training_is_cut_in_both_modes() -> None:
    class Mode(Linears):
        def forward(self, x):
            x = self.b(self.a(x)).tanh() if self.training else self.a(x) * 2
            return self.c(x)

    model, x = Mode(), torch.rand(3, 4)
    found = layered(model, x)
    assert names(found)[0] == "a"
    assert names(found)[-1] == "c"
    for mode in (True, False):
        parts = [cut(found, i, i + 1).train(mode) for i in range(len(found.layers))]
        bundle = (x,)
        for part in parts[:-1]:
            bundle = part(*bundle)
        assert torch.equal(parts[-1](*bundle), model.train(mode)(x))


def test_what_only_training_gives_is_made_where_it_is_read() -> None:
    class Auxiliary(Linears):
        def forward(self, x):
            early = self.a(x)
            late = self.b(early.relu())
            return (late, self.c(early)) if self.training else late

    model = of(Auxiliary())
    assert names(model) == ["a", "relu", "b", "c"]
    assert len(model.bundles[2]) == 2  # what the second classifier reads passes the first


def test_a_constant_may_depend_on_the_mode() -> None:
    class Dropping(Linears):
        def forward(self, x):
            return self.b(functional.dropout(self.a(x), 0.5, self.training))

    model, x = Dropping(), torch.rand(3, 4)
    found = layered(model, x)
    assert names(found) == ["a", "dropout", "b"]
    whole = cut(found, 0, 3)
    assert torch.equal(whole.eval()(x), model.eval()(x))
    torch.manual_seed(1)
    expected = model.train()(x)
    torch.manual_seed(1)
    assert torch.equal(whole.train()(x), expected)


def test_random_numbers_without_an_input_are_drawn_anew() -> None:
    class Noise(Linears):
        def forward(self, x):
            return self.b(self.a(x) + torch.randn(3, 4))

    model = of(Noise())
    assert names(model) == ["a", "randn", "add", "b"]
    randn = cut(model, 1, 2)
    one, two = randn(torch.rand(3, 4))[1], randn(torch.rand(3, 4))[1]
    assert not torch.equal(one, two)


def test_what_runs_without_gradient_stays_so() -> None:
    class Frozen(Linears):
        def forward(self, x):
            with torch.no_grad():
                y = self.a(x)
            return self.c(self.b(x) + y)

    model, x = Frozen(), torch.rand(3, 4)
    found = layered(model, x)
    loss = cut(found, 0, len(found.layers))(x).sum()
    gradients = torch.autograd.grad(loss, tuple(model.parameters()), allow_unused=True)
    assert gradients[0] is None
    assert gradients[2] is not None


def test_what_tracing_does_not_see_is_found_by_running() -> None:
    class Told(Linears):
        def forward(self, x):
            x = self.a(x)
            return self.b(2 * x if isinstance(x, torch.Tensor) else x)

    assert names(of(Told())) == ["a", "mul", "b"]


def test_a_count_that_no_buffer_keeps_is_named() -> None:
    class Counting(Linears):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return self.b(self.a(x)) * self.calls

    assert "its forward changes calls, which no trace sees" in of(Counting()).notes[0]


def test_untouched_restores_buffers_mode_and_random_state() -> None:
    model = nn.BatchNorm1d(4)
    state, mean = torch.get_rng_state(), model.running_mean.clone()
    with untouched(model):
        model.eval()
        model.train()(torch.rand(3, 4))
        assert not torch.equal(model.running_mean, mean)
        model.eval()
    assert model.training
    assert torch.equal(model.running_mean, mean)
    assert torch.equal(torch.get_rng_state(), state)


def test_what_only_values_can_size_is_told_by_the_line_not_by_the_operation() -> None:
    with FakeTensorMode() as shapes, pytest.raises(RuntimeError) as caught:
        shapes.from_tensor(torch.ones(3)).nonzero()
    reason = reason_of(caught.value)
    assert reason.text == (
        "how much it computes depends on the values of a tensor "
        "(shapes.from_tensor(torch.ones(3)).nonzero())"
    )
    assert "aten" not in reason.text + reason.advice
    assert "torch.where" in reason.advice
