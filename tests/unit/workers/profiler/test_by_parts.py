"""Layers that are made and timed one by one cost what they cost in a chain, and equal ones once."""

import json
from pathlib import Path

import pytest
import torch

import workers.zoo
from backend.errors import InvalidInput
from backend.runs.request.spec import ProfileSpec
from workers.definitions.check_by_parts import check_by_parts
from workers.definitions.equal_layers import equal_layers
from workers.definitions.prepare import outlined
from workers.profiler import parts_profile
from workers.profiler.by_parts import MEASURED
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

BLOCKS = """
class Block(nn.Module):
    def __init__(self, width, slope):
        super().__init__()
        self.wide, self.act = nn.Linear(width, 4 * width), nn.LeakyReLU(slope)
        self.narrow, self.drop = nn.Linear(4 * width, width), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.narrow(self.act(self.wide(x))))

def model(width: int = 192, depth: int = 6):
    torch.manual_seed(3)
    blocks = [Block(width, 0.1 if n < depth - 1 else 0.2) for n in range(depth)]
    return nn.Sequential(nn.Linear(4, width), *blocks, nn.Linear(width, 3))

def example(batch):
    return torch.rand(batch, 4), torch.randint(3, (batch,))

def loss(output, target):
    return nn.functional.cross_entropy(output, target)
"""
UNSEEN = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 400), nn.Linear(400, 3)

    def forward(self, x):
        x = self.first(x)
        return self.second(2 * x if isinstance(x, torch.Tensor) else x)

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

def example(batch):
    return torch.rand(batch, 4), torch.randint(3, (batch,))
"""


def none(done: int, of: int) -> None:
    """Progress that nobody waits for."""


def zoo_file(name: str) -> Path:
    return Path(workers.zoo.__file__).parent / f"{name}.py"


@pytest.mark.parametrize("name", ["mlp", "resnet_digits", "gpt_tiny"])
def test_it_is_the_profile_of_the_whole_but_for_the_seconds(name: str) -> None:
    spec = ProfileSpec(1, 4, 1)
    whole = profiled(name, zoo_file(name), spec, Reporter(0))
    parts = profiled(name, zoo_file(name), ProfileSpec(1, 4, 1, by_parts=True), Reporter(0))
    assert (parts.by_parts, whole.by_parts) == (True, False)
    assert parts.graph.edges == whole.graph.edges
    assert parts.graph.crossings == whole.graph.crossings
    assert parts.graph.tied_weights == whole.graph.tied_weights
    assert parts.tracing == whole.tracing
    for one, other in zip(parts.layers, whole.layers, strict=True):
        assert (one.name, one.kind, one.flops) == (other.name, other.kind, other.flops)
        assert one.output_bytes == other.output_bytes
        assert one.parameter_bytes == other.parameter_bytes
        assert (one.update > 0) == (other.update > 0)
    assert parts.whole_forward > 0  # it fits, so that it was run beside them
    assert parts.peak_bytes == pytest.approx(whole.peak_bytes, rel=0.05)


def test_equal_blocks_are_measured_a_few_times_and_say_how_far_apart_they_were(define) -> None:
    loaded = define(BLOCKS)
    found = profiled("blocks", loaded.file, ProfileSpec(1, 8, 2, by_parts=True), Reporter(0))
    wide = [layer for layer in found.layers if layer.name.endswith("wide")]
    assert len({(layer.forward, layer.backward, layer.spread) for layer in wide}) == 1
    assert wide[0].spread is not None
    assert found.layers[0].spread is None
    # Of the six blocks three are measured; the last activation has another slope.
    per_block = 5
    measured = 1 + MEASURED * per_block + 1 + 1
    assert f"{measured} of {len(found.layers)};" in " ".join(found.notes)


def test_a_layer_with_another_constant_is_not_equal(define) -> None:
    loaded = define(BLOCKS)
    batch = loaded.example(2)
    layered = outlined(loaded, batch[0], "symbolic")
    equal = dict(zip((layer.name for layer in layered.layers), equal_layers(layered), strict=True))
    assert equal["2.act"] == equal["5.act"] != equal["6.act"]
    assert equal["2.wide"] == equal["6.wide"]
    assert equal["7"] == len(layered.layers) - 1


@pytest.mark.parametrize("name", ["vgg_digits", "gpt_tiny", "gnmt", "inception_v3", "s2vt"])
def test_layers_compute_what_the_model_computes(small_zoo, name: str) -> None:
    """With the model's own first values, and dropout's random numbers."""
    loaded = small_zoo(name)
    batch = loaded.example(2)
    tracing = "captured" if name in ("gnmt", "gpt_tiny", "s2vt") else "symbolic"
    layered = outlined(loaded, batch[0], tracing, large=1)
    assert check_by_parts(layered, batch[0], none) == ()


def test_random_numbers_are_those_of_the_model(define) -> None:
    loaded = define(BLOCKS)
    batch = loaded.example(2)
    layered = outlined(loaded, batch[0], "symbolic", large=1)
    assert check_by_parts(layered, batch[0], none) == ()


def test_what_tracing_does_not_see_is_found(define) -> None:
    layered = outlined(define(UNSEEN), torch.rand(2, 4), "symbolic", large=1)
    with pytest.raises(ValueError, match="tracing does not see"):
        check_by_parts(layered, torch.rand(2, 4), none)


def test_a_count_that_a_capture_on_shapes_does_not_show_is_found(define) -> None:
    text = UNSEEN.replace(
        "x = self.first(x)", "x, self.n = self.first(x), getattr(self, 'n', 0) + 1"
    )
    text = text.replace("2 * x if isinstance(x, torch.Tensor) else x", "x * (1 + self.n // 8)")
    layered = outlined(define(text), torch.rand(2, 4), "captured", large=1)
    with pytest.raises(ValueError, match="its forward changes n, which no trace sees"):
        check_by_parts(layered, torch.rand(2, 4), none)


def test_what_does_not_fit_is_made_by_parts_and_says_that_the_whole_was_not_run(
    define, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_profile, "free", lambda device: 1000)
    found = profiled("blocks", define(BLOCKS).file, ProfileSpec(1, 8, 1), Reporter(0))
    assert found.by_parts
    assert found.whole_forward == 0.0
    assert found.peak_bytes is None
    assert any("was not run beside them" in note for note in found.notes)
    assert any("1,000 bytes are free" in note for note in found.notes)


def test_a_model_whose_path_depends_on_values_cannot_be_made_by_parts(define) -> None:
    loaded = define(BY_VALUE)
    with pytest.raises(InvalidInput, match="cannot be profiled by parts"):
        profiled("branch", loaded.file, ProfileSpec(1, 2, 1, by_parts=True), Reporter(0))


def test_a_config_of_transformers_by_parts(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 7,
        "num_attention_heads": 4,
        "vocab_size": 500,
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    spec = ProfileSpec(1, 2, 1, parameters={"length": 16}, by_parts=True)
    found = profiled("llama", tmp_path / "config.json", spec, Reporter(0))
    blocks = [layer for layer in found.layers if layer.name.startswith("model.layers.")]
    assert len(blocks) == 7
    assert len({layer.forward for layer in blocks}) <= 3  # the first and the last may take in more
