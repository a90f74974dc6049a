"""Weights and buffers that several layers use."""

import torch
from torch import nn

from tests.unit.workers.definitions.linears import Linears, names, of


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
    assert sorted(model.tied_weights) == [(0, (2,), "a.bias", 16), (0, (2,), "a.weight", 64)]
    assert [sum(spec.is_weight for spec in bundle) for bundle in model.specs] == [0, 2, 2, 0, 0]
    rows = {(made, size): rows for made, _, size, _, _, rows in model.crossings}
    assert rows[0, 16] == rows[0, 64] == 0  # weights are no samples
    assert all(rows for (made, _), rows in rows.items() if made)


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


def test_frozen_parameters_are_no_bytes_to_train() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[0].requires_grad_(False)
    assert [layer.parameter_bytes for layer in of(model).layers] == [0, 20 * 4]
