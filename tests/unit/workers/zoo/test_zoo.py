"""Every definition of the zoo keeps the contract, stands alone, and has the published size."""

import ast
from pathlib import Path

import pytest
import torch
import transformers

import workers.zoo
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.samples import tensors

ZOO = Path(workers.zoo.__file__).parent
PUBLISHED = [
    # Krizhevsky et al. 2012: "60 million parameters"; the sum over figure 2's two towers.
    ("alexnet", {}, 60_965_224),
    # Krizhevsky 2014 as PipeDream profiled it: the published alexnet/graph.txt sums to this.
    ("alexnet", {"towers": 1, "width": 64}, 61_100_840),
    # Simonyan and Zisserman, table 2: 138 million; PipeDream's vgg16/graph.txt sums to this.
    ("vgg16", {}, 138_357_544),
    # He et al. 2016, table 1; PipeDream's resnet50/graph.txt sums to this.
    ("resnet50", {}, 25_557_032),
    # Szegedy et al. 2016: "less than 25 million", without the side classifier.
    ("inception_v3", {"auxiliary": False}, 23_834_568),
    # PipeDream's inception_v3/graph.txt, with the side classifier, sums to this.
    ("inception_v3", {}, 27_161_264),
    # PipeDream's translation profiles: gnmt/graph.txt and gnmt_large/graph.txt sum to these.
    ("gnmt", {}, 193_765_952),
    ("gnmt", {"layers": 16}, 277_717_568),
    # Merity et al. 2018, table 1: 24 million (Penn Treebank), and table 2: 33 million
    # (WikiText-2 has 33,278 words).
    ("awd_lm", {}, 24_221_600),
    ("awd_lm", {"tokens": 33278}, 33_556_078),
    # Radford et al. 2019, small; transformers' GPT2LMHeadModel of its default config.
    ("gpt2", {}, 124_439_808),
    # Devlin et al. 2019: 110 and 340 million; transformers' BertForMaskedLM, base and large.
    ("bert", {}, 109_514_298),
    ("bert", {"width": 1024, "depth": 24, "heads": 16}, 335_174_458),
    # Dosovitskiy et al. 2021, table 1: 86 million; transformers' ViTForImageClassification.
    ("vit", {}, 86_567_656),
]


@pytest.fixture
def files() -> dict[str, Path]:
    return {file.stem: file for file in ZOO.glob("*.py") if file.stem != "__init__"}


def num_parameters(name: str, parameters: dict[str, object]) -> int:
    with torch.device("meta"):
        model = load(ZOO / f"{name}.py", parameters).model()
    return sum(parameter.numel() for parameter in model.parameters())


def test_titles_and_imports(files) -> None:
    for file in files.values():
        tree = ast.parse(file.read_text())
        title = ast.get_docstring(tree)
        assert title
        assert title.splitlines()[0].endswith(".")
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        modules = {getattr(node, "module", None) or node.names[0].name for node in nodes}
        assert not {m for m in modules if m.split(".")[0] in ("app", "backend", "workers")}


def test_every_model_runs_and_can_be_cut(small_zoo, small_name: str) -> None:
    definition = small_zoo(small_name)
    batch = definition.example(3)
    model = prepare(definition, batch)
    assert all("share" in note for note in model.notes)
    assert len(model.layers) >= 8
    loss = definition.loss(model.model(*tensors(batch[0])), batch[1])
    assert torch.isfinite(loss)


def test_every_model_has_a_small_form(files, small_zoo) -> None:
    for name in files:
        assert small_zoo(name).model() is not None


@pytest.mark.parametrize(
    ("name", "parameters", "count"), PUBLISHED, ids=lambda value: str(value).replace(" ", "")
)
def test_published_number_of_parameters(name: str, parameters: dict, count: int) -> None:
    assert num_parameters(name, parameters) == count


def test_s2vt_is_as_large_as_the_published_file() -> None:
    """The authors' model file has 333 MB (mebibytes). Theirs has one bias per LSTM, torch's
    two: 2 x 4 x 1000 more."""
    assert (num_parameters("s2vt", {}) - 8000) * 4 / 2**20 == pytest.approx(333, abs=0.5)


@pytest.mark.parametrize(
    ("name", "model", "config", "sizes"),
    [
        ("gpt2", "GPT2LMHeadModel", "GPT2Config", {}),
        ("bert", "BertForMaskedLM", "BertConfig", {}),
        ("vit", "ViTForImageClassification", "ViTConfig", {"num_labels": 1000}),
    ],
)
def test_as_many_as_transformers_has(name: str, model: str, config: str, sizes: dict) -> None:
    with torch.device("meta"):
        other = getattr(transformers, model)(getattr(transformers, config)(**sizes))
    assert num_parameters(name, {}) == sum(weight.numel() for weight in other.parameters())


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
