"""Where a model may be cut, and what happens where it may not."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from workers.definitions.cut import cut
from workers.definitions.layering import layered
from workers.definitions.layers import LayeredModel
from workers.definitions.trace import untouched
from workers.definitions.units import blocks


def names(model: LayeredModel) -> list[str]:
    return [layer.name for layer in model.layers]


def of(model: nn.Module, *shape: int) -> LayeredModel:
    return layered(model, torch.rand(*(shape or (3, 4))))


class Linears(nn.Module):
    """Three linear layers that subclasses of forward may use."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))


def test_a_chain_is_cut_behind_every_module() -> None:
    model = of(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)))
    assert names(model) == ["0", "1", "2"]
    assert [layer.kind for layer in model.layers] == ["Linear", "ReLU", "Linear"]
    assert [layer.output_bytes for layer in model.layers] == [3 * 5 * 4, 3 * 5 * 4, 3 * 2 * 4]
    assert [layer.parameter_bytes for layer in model.layers] == [25 * 4, 0, 12 * 4]
    assert model.edges == ((0, 1), (1, 2))
    assert model.notes == ()


def test_a_skip_travels_with_the_bundle() -> None:
    class Skip(Linears):
        def forward(self, x):
            y = self.a(x)
            return self.c(self.b(y) + y)

    model = of(Skip())
    assert names(model) == ["a", "b", "add", "c"]
    assert (0, 2) in model.edges
    assert [len(bundle) for bundle in model.specs] == [1, 1, 2, 1]


def test_the_input_that_is_read_late_counts_as_output_of_the_first_layer() -> None:
    class Late(Linears):
        def forward(self, x):
            return self.b(self.a(x)) + x

    model = of(Late())
    assert [len(bundle) for bundle in model.specs] == [1, 2, 2]
    assert model.layers[0].output_bytes == 2 * 3 * 4 * 4
    assert model.edges == ((0, 1), (0, 2), (1, 2))


def test_an_operation_in_place_stays_with_what_it_changes() -> None:
    model = of(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)))
    assert names(model) == ["0", "2"]


def test_a_change_through_a_view_is_seen() -> None:
    class Through(Linears):
        def forward(self, x):
            y = self.a(x)
            z = self.b(y.detach().clone())
            y.view(-1).add_(1.0)
            return self.c(y + z)

    assert names(of(Through())) == ["a", "add", "c"]


def test_a_weight_that_two_layers_share_crosses_the_cut() -> None:
    class Tied(Linears):
        def forward(self, x):
            return self.c(torch.relu(self.a(self.b(self.a(x)))))

    model = of(Tied())
    assert names(model) == ["a", "b", "a_2", "relu", "c"]
    assert [len(bundle) for bundle in model.specs] == [1, 3, 3, 1, 1]
    assert [layer.parameter_bytes for layer in model.layers] == [80, 80, 0, 0, 80]
    assert model.layers[0].output_bytes == 80 + 3 * 4 * 4
    assert "a and a_2 share a.weight, a.bias" in model.notes[0]
    assert "80 bytes each way" in model.notes[0]
    assert sorted(model.ties) == [(0, (2,), "a.bias", 16), (0, (2,), "a.weight", 64)]


def test_a_parameter_read_by_two_functions_crosses_too() -> None:
    class Scaled(Linears):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return self.c(self.b(self.a(x) * self.scale) * self.scale)

    model = of(Scaled())
    assert names(model) == ["a", "mul", "b", "mul_2", "c"]
    assert [layer.parameter_bytes for layer in model.layers] == [80, 16, 80, 0, 80]


def test_a_weight_of_one_name_tied_to_another_is_one_weight() -> None:
    class Tied(Linears):
        def __init__(self):
            super().__init__()
            self.c.weight = self.a.weight

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    model = of(Tied())
    assert names(model) == ["a", "b", "c"]
    assert sum(layer.parameter_bytes for layer in model.layers) == (2 * 16 + 3 * 4) * 4


def test_a_buffer_that_is_only_read_joins_nothing() -> None:
    class Masked(Linears):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(4))

        def forward(self, x):
            return self.b(self.a(x) * self.mask) * self.mask

    assert names(of(Masked())) == ["a", "mul", "b", "mul_2"]


def test_a_buffer_that_changes_joins_its_users() -> None:
    class Twice(Linears):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4, affine=False)

        def forward(self, x):
            return self.c(self.norm(self.b(self.norm(self.a(x)))))

    model = Twice()
    before = model.norm.running_mean.clone()
    assert names(of(model)) == ["a", "b", "c"]
    assert torch.equal(model.norm.running_mean, before)


def test_sizes_are_constants_and_cross_no_cut() -> None:
    class Sized(Linears):
        def forward(self, x):
            batch, width = x.shape
            y = self.b(self.a(x)).view(batch, 2, width // 2)
            return self.c(y.reshape(batch, -1))

    assert names(of(Sized())) == ["a", "b", "view", "reshape", "c"]


def test_a_tuple_stays_inside_a_layer() -> None:
    class Split(Linears):
        def forward(self, x):
            left, right = self.a(x).chunk(2, dim=1)
            return self.c(torch.cat([right, left], dim=1))

    model = of(Split())
    assert names(model) == ["a", "chunk", "cat", "c"]
    assert model.layers[1].output_bytes == 3 * 4 * 4


def test_further_arguments_keep_their_defaults() -> None:
    class Optional(Linears):
        def forward(self, x, mask=None):
            x = self.a(x)
            return self.b(x) if mask is None else self.c(x)

    assert names(of(Optional())) == ["a", "b"]


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


def test_a_forward_that_does_something_else_in_training_is_not_cut() -> None:
    class Mode(Linears):
        def forward(self, x):
            return self.b(self.a(x)) if self.training else self.a(x)

    assert "self.training" in of(Mode()).notes[0]
    assert len(of(Mode()).layers) == 1


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


def test_several_inputs_by_position_and_by_name() -> None:
    class Two(Linears):
        def forward(self, x, mask):
            return self.b(self.a(x) * mask)

    x, mask = torch.rand(3, 4), torch.ones(3, 4, dtype=torch.long)
    model = layered(Two(), (x, mask))
    assert names(model) == ["a", "mul", "b"]
    assert [len(bundle) for bundle in model.specs] == [2, 2, 1]
    assert model.specs[1][0].dtype == torch.long
    assert not model.specs[1][0].requires_grad


def test_blocks_close_what_a_list_repeats() -> None:
    class Block(Linears):
        def forward(self, x):
            return x + self.b(torch.relu(self.a(x)))

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.blocks = nn.Linear(4, 4), nn.ModuleList([Block(), Block()])

        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return x

    x = torch.rand(3, 4)
    closed = layered(Deep(), x, "blocks")
    assert [(layer.name, layer.kind) for layer in closed.layers] == [
        ("first", "Linear"),
        ("blocks.0", "Block"),
        ("blocks.1", "Block"),
    ]
    assert len(layered(Deep(), x).layers) == 9


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["h.0.a", "h.0.b", "h.1.a", "head"], {"h.0", "h.1"}),
        (["stages.0.0.a", "stages.0.1.a"], {"stages.0.0", "stages.0.1"}),
        (["h.0.experts.0.up", "h.0.experts.1.up", "h.0.norm"], {"h.0"}),
        (["0", "1", "2.weight"], {"2"}),
        (["", "features.0", "features.1"], set()),
    ],
)
def test_what_a_block_is(paths: list[str], found: set[str]) -> None:
    assert blocks(paths) == found


def test_what_tracing_does_not_see_is_found_by_running() -> None:
    class Counting(Linears):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return self.b(self.a(x)) * self.calls

    assert "tracing does not see" in of(Counting()).notes[0]


def test_frozen_parameters_are_no_bytes_to_train() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[0].requires_grad_(False)
    assert [layer.parameter_bytes for layer in of(model).layers] == [0, 20 * 4]


def test_dropout_is_cut_like_any_module() -> None:
    assert names(of(nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 4)))) == [
        "0",
        "1",
        "2",
    ]


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
