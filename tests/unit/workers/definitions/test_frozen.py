"""Weights that are not trained, as under LoRA, are part of what a profile counts."""

import pytest
import torch

from backend.profiles.profile import Profile
from backend.runs.request.spec import ProfileSpec
from workers.definitions.prepare import outlined, prepare
from workers.profiler.described import described

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
