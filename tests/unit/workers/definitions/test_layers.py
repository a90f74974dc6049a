"""Where a model may be cut, and what crosses a cut."""

import pytest
import torch
from torch import nn

from tests.unit.workers.definitions.linears import Linears, names, of
from workers.definitions.layering import layered
from workers.definitions.units import blocks


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


def test_a_block_that_holds_most_of_the_weights_is_opened() -> None:
    paths = ["h.0.attention.q", "h.0.mlp.0.up", "h.0.mlp.0.down", "h.1.attention.q"]
    sizes = {"h.0.attention.q.weight": 5, "h.0.mlp.0.up.weight": 2, "h.0.mlp.0.down.weight": 2}
    assert blocks(paths, sizes | {"h.1.attention.q.weight": 9}) == {"h.0", "h.1"}
    assert blocks(paths, sizes | {"h.1.attention.q.weight": 1}) == {"h.0.mlp.0", "h.1"}


def test_dropout_is_cut_like_any_module() -> None:
    assert names(of(nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 4)))) == [
        "0",
        "1",
        "2",
    ]
