"""Weights that are not trained, as under LoRA, are part of what a profile counts."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from backend.profiles.profile import Profile
from backend.runs.request.spec import ProfileSpec
from workers.definitions.prepare import outlined, prepare
from workers.profiler.described import described
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

LORA = """
class Adapted(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width)
        for weight in self.base.parameters():
            weight.requires_grad_(False)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))

class Model(nn.Module):
    def __init__(self, width=64, depth=3, rank=2):
        super().__init__()
        self.blocks = nn.ModuleList(Adapted(width, rank) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return x

def model():
    return Model()

def example(n):
    return torch.rand(n, 64), torch.zeros(n, dtype=torch.long)
"""
ADAPTED = Path(__file__).parents[3] / "contract" / "models" / "lora.py"
FROZEN, TRAINED = 3 * (64 * 64 + 64) * 4, 3 * 2 * 64 * 2 * 4


def test_a_frozen_base_and_its_adapters_are_counted_apart(define) -> None:
    loaded = define(LORA)
    layered = prepare(loaded, loaded.example(2))
    assert sum(layer.frozen_bytes for layer in layered.layers) == FROZEN
    assert sum(layer.parameter_bytes for layer in layered.layers) == TRAINED
    shapes = outlined(loaded, torch.rand(2, 64), layered.tracing, large=0)
    assert [layer.frozen_bytes for layer in shapes.layers] == [
        layer.frozen_bytes for layer in layered.layers
    ]


@pytest.fixture
def profile(write) -> Profile:
    return described("lora", write(LORA), ProfileSpec(1, 2, peak="v100"))


def test_a_profile_has_both(profile: Profile) -> None:
    assert (profile.frozen_bytes, profile.parameter_bytes) == (FROZEN, TRAINED)
    assert all(layer.frozen_bytes in (0, FROZEN // 3) for layer in profile.layers)


def test_kept_activations_are_those_of_trained_layers_and_what_follows() -> None:
    """As shapes say and as it was measured; of a frozen layer neither its weights are kept nor,
    where nothing is trained up to it, anything at all."""
    told = described("lora", ADAPTED, ProfileSpec(1, 4, peak="v100"))
    found = profiled("lora", ADAPTED, ProfileSpec(1, 4, 1), Reporter(0))
    assert [x.saved_bytes for x in found.layers] == [x.saved_bytes for x in told.layers]
    assert told.graph == replace(found.graph, layers=told.layers)
    assert found.graph.one_way == told.graph.one_way
    first = next(n for n, layer in enumerate(found.layers) if layer.parameter_bytes)
    for profile in (told, found):
        for layer in profile.layers[:first]:
            assert (layer.saved_bytes, layer.backward, layer.backward_input) == (0, 0.0, 0.0)
    assert found.graph.one_way[:first] == (True,) * first
    assert not any(found.graph.one_way[first + 4 :])
    linear = {layer.name: layer for layer in found.layers}
    assert linear["third.out"].saved_bytes == 0  # its weight is not counted
    assert linear["third.between"].saved_bytes > 0
    frozen, adapter = linear["third.query.base"], linear["third.query.down"]
    assert (frozen.frozen_bytes, frozen.parameter_bytes) == (576, 0)
    assert (adapter.frozen_bytes, adapter.parameter_bytes) == (0, 128)
    ratios = {layer.name: layer.backward / layer.forward for layer in told.layers if layer.forward}
    assert (ratios["third.query.base"], ratios["third.query.down"]) == (1.0, 2.0)
