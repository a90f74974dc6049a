"""Definitions written on the spot, those of the zoo, and stages composed by hand."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

import workers.zoo
from workers.definitions.cut import cut
from workers.definitions.definition import answers
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Batch, LoadedDefinition, load
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import dense, tensors
from workers.runtime.compute.stage import Activations, StageModule

ZOO = Path(workers.zoo.__file__).parent
SMALL = {
    "alexnet": {"width": 6, "hidden": 16, "classes": 10, "image": 64},
    "awd_lm": {"tokens": 50, "words": 8, "width": 12, "length": 6},
    "bert": {"tokens": 50, "width": 16, "depth": 2, "heads": 2, "context": 16, "length": 8},
    "gnmt": {"width": 8, "tokens": 50, "length": 7},
    "gpt2": {"tokens": 50, "width": 16, "depth": 2, "heads": 2, "context": 16, "length": 8},
    "gpt_tiny": {},
    "inception_v3": {"width": 1, "classes": 10, "image": 80, "auxiliary": False},
    "mlp": {},
    "resnet50": {"width": 4, "classes": 10, "image": 32},
    "resnet_digits": {},
    "s2vt": {"features": 8, "inner": 6, "width": 8, "tokens": 30, "frames": 4, "words": 3},
    "vgg16": {"width": 2, "hidden": 16, "classes": 10, "image": 32},
    "vgg_digits": {},
    "vit": {"image": 16, "patch": 4, "width": 16, "depth": 2, "heads": 2, "classes": 5},
}
"""Every model of the zoo, small enough for tests."""


@dataclass
class Composition:
    """A loss and the gradient of every weight, by the model's names."""

    loss: Tensor
    gradients: dict[str, Tensor]

    def differs_from(self, other: "Composition") -> list[str]:
        """What is not equal to the last bit."""
        found = [] if torch.equal(self.loss, other.loss) else ["the loss"]
        assert self.gradients.keys() == other.gradients.keys()
        mine, theirs = self.gradients, other.gradients
        return found + [name for name in mine if not torch.equal(mine[name], theirs[name])]


def whole(definition: LoadedDefinition, batch: Batch, layered: LayeredModel) -> Composition:
    """The model as its author wrote it, by plain autograd."""
    model = layered.model
    with untouched(model):
        torch.manual_seed(1)
        output = model.train()(*(tensor.clone() for tensor in tensors(batch[0])))
        loss = definition.loss(output, answers(definition.loss, *batch))
        trained = [(n, w) for n, w in model.named_parameters() if w.requires_grad]
        names, weights = zip(*trained, strict=True)
        found = torch.autograd.grad(loss, weights, allow_unused=True)
    pairs = zip(names, weights, found, strict=True)
    gradients = {n: torch.zeros_like(w) if g is None else dense(g) for n, w, g in pairs}
    return Composition(loss.detach(), gradients)


def in_stages(
    definition: LoadedDefinition, batch: Batch, layered: LayeredModel, inner: set[int] | None = None
) -> Composition:
    """The model cut before the layers `inner`, through the runtime's own stages."""
    bounds = [0, *sorted(inner or ()), len(layered.layers)]
    held: list[tuple[StageModule, Activations]] = []
    bundle, gradients = tuple(tensor.clone() for tensor in tensors(batch[0])), ()
    with untouched(layered.model):
        torch.manual_seed(1)
        for first, stop in pairwise(bounds):
            loss = definition.loss if stop == bounds[-1] else None
            stage = StageModule(cut(layered, first, stop).train(), layered.specs[first], loss)
            weights = {n: w.clone().requires_grad_() for n, w in stage.weights.items()}
            targets = answers(definition.loss, *batch)
            bundle, kept = stage.forward(bundle, weights, targets)
            held.append((stage, kept))
            result, bundle = bundle[0], tuple(tensor.detach() for tensor in bundle)
        found: dict[str, Tensor] = {}
        for stage, kept in reversed(held):
            gradients, of_weights = stage.backward(kept, gradients)
            assert not found.keys() & of_weights.keys(), "a weight belongs to one stage"
            found |= of_weights
    return Composition(result.detach(), _by_model_names(layered, found))


def _by_model_names(layered: LayeredModel, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """A tied weight goes by its first name; what no layer reads has no gradient."""
    weights = dict(layered.model.named_parameters(remove_duplicate=False))
    by_identity = {id(weights[name]): gradient for name, gradient in found.items()}
    return {
        name: by_identity.get(id(weight), torch.zeros_like(weight))
        for name, weight in layered.model.named_parameters()
        if weight.requires_grad
    }


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """As ranks do; small models only wait for more threads."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def composed():
    """(the whole model, the same in stages)."""
    return whole, in_stages


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a definition file; every text gets the usual imports in its first three lines."""

    def write(text: str) -> Path:
        head = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
        file = tmp_path / "mine.py"
        file.write_text(head + textwrap.dedent(text))
        return file

    return write


@pytest.fixture
def define(write: Callable[[str], Path]) -> Callable[[str], LoadedDefinition]:
    return lambda text: load(write(text))


@pytest.fixture(scope="session")
def zoo() -> Callable[[str], LoadedDefinition]:
    """A model of the zoo with its own sizes."""
    return lambda name: load(ZOO / f"{name}.py")


@pytest.fixture(scope="session")
def small_zoo() -> Callable[[str], LoadedDefinition]:
    """The same, small."""
    return lambda name: load(ZOO / f"{name}.py", SMALL[name])


@pytest.fixture(scope="session", params=sorted(SMALL))
def small_name(request: pytest.FixtureRequest) -> str:
    return request.param
