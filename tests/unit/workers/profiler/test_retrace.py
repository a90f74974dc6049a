"""A profile says how ranks find its layers again, or why they cannot on shapes alone."""

import pytest
import torch

from workers.definitions.prepare import prepare
from workers.profiler.retrace import traced_again

CPU = torch.device("cpu")
HIDDEN = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.pair = (torch.randn(300, 300), torch.randn(300, 300))

    def forward(self, x):
        return self.inner(x) + self.pair[0].mean()

def model():
    return Model()
"""
BY_VALUE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.more = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x) if x.sum() > 0 else self.more(x)

def model():
    return Model()
"""


def retraced(loaded, inputs) -> tuple[str, tuple[str, ...]]:
    layered = prepare(loaded, (inputs, torch.zeros(2, dtype=torch.long)))
    return traced_again(loaded, inputs, layered, CPU)


@pytest.mark.parametrize(
    ("name", "tracing"), [("vgg_digits", "symbolic"), ("gnmt", "symbolic"), ("gpt2", "captured")]
)
def test_models_of_the_zoo_are_traced_on_shapes(small_zoo, name: str, tracing: str) -> None:
    loaded = small_zoo(name)
    batch = loaded.example(2)
    assert traced_again(loaded, batch[0], prepare(loaded, batch), CPU) == (tracing, ())


def test_a_factory_that_hides_tensors_is_named_and_says_what_to_change(define) -> None:
    tracing, (note,) = retraced(define(HIDDEN), torch.rand(2, 4))
    assert tracing == ""
    assert "every rank makes the whole model before it keeps its stages" in note
    assert "pair holds tensors in a tuple; let register_buffer keep each of them" in note


def test_a_model_that_was_only_run_is_one_layer_and_says_so_elsewhere(define) -> None:
    assert retraced(define(BY_VALUE), torch.rand(2, 4)) == ("", ())
