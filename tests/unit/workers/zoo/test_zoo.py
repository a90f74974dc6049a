"""Every definition of the zoo keeps the contract and stands alone."""

import ast

import pytest
import torch

from workers.definitions.prepare import prepare

SMALL = ("gpt_tiny", "mlp", "resnet_digits", "vgg_digits")


@pytest.fixture
def files():
    from pathlib import Path

    import workers.zoo

    folder = Path(workers.zoo.__file__).parent
    return {file.stem: file for file in folder.glob("*.py") if file.stem != "__init__"}


def test_what_is_there(files) -> None:
    assert sorted(files) == sorted((*SMALL, "vgg16"))


def test_titles_and_imports(files) -> None:
    for file in files.values():
        tree = ast.parse(file.read_text())
        title = ast.get_docstring(tree)
        assert title
        assert title.splitlines()[0].endswith(".")
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        modules = {getattr(node, "module", None) or node.names[0].name for node in nodes}
        assert not {m for m in modules if m.split(".")[0] in ("app", "backend", "workers")}


@pytest.mark.parametrize("name", SMALL)
def test_example_runs_and_can_be_cut(zoo, name: str) -> None:
    definition = zoo(name)
    inputs, targets = definition.example(5)
    model = prepare(definition, (inputs, targets))
    assert model.notes == ()
    assert len(model.layers) >= 8
    loss = definition.loss(model.model(inputs), targets)
    assert torch.isfinite(loss)


def test_vgg16_has_the_published_number_of_parameters(zoo) -> None:
    """Simonyan and Zisserman, table 2 says 138 million; the exact count is well known."""
    with torch.device("meta"):
        model = zoo("vgg16").model()
        assert sum(p.numel() for p in model.parameters()) == 138_357_544
        assert model(torch.empty(2, 3, 224, 224)).shape == (2, 1000)


def test_vgg_digits_has_the_proportions_of_vgg(zoo) -> None:
    """Most parameters in the full layers, most multiplications in the convolutions."""
    definition = zoo("vgg_digits")
    model = prepare(definition, definition.example(1))
    parameters = {"Conv2d": 0, "Linear": 0}
    work = {"Conv2d": 0, "Linear": 0}
    for layer in model.layers:
        if layer.kind in parameters:
            pixels = model.model.get_submodule(layer.name).weight.shape
            positions = layer.output_bytes // 4 // pixels[0]
            parameters[layer.kind] += layer.parameter_bytes // 4
            work[layer.kind] += pixels.numel() * positions
    assert parameters["Linear"] > 2 * parameters["Conv2d"]
    assert parameters["Linear"] > 4_000_000
    assert work["Conv2d"] > 2 * work["Linear"]


def test_gpt_text_keeps_its_halves_apart(zoo) -> None:
    definition = zoo("gpt_tiny")
    (inputs, targets), (held_inputs, _) = definition.data()
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert len(held_inputs) > 20
    last, first = inputs[-1], held_inputs[0]
    assert not any(torch.equal(last[-k:], first[:k]) for k in range(8, 64))
