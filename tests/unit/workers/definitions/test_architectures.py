"""Ten architectures of transformers, from config.json, cut anywhere: equal to the last bit.

Uncut, what was captured may differ from the model by rounding: transformers masks attention by
a tensor while it is exported and by a flag of the kernel otherwise.
"""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.workers.architectures import CONFIGS, definition
from workers.definitions.errors import DefinitionFailed
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Batch, LoadedDefinition, load
from workers.definitions.prepare import prepare
from workers.definitions.units import Granularity

Case = tuple[LoadedDefinition, Batch, LayeredModel]


def prepared(folder: Path, name: str, granularity: Granularity) -> Case:
    loaded = definition(folder, name)
    torch.manual_seed(0)
    batch = loaded.example(2)
    return loaded, batch, prepare(loaded, batch, seed=3, granularity=granularity)


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return prepared(tmp_path_factory.mktemp(request.param), request.param, "fine")


@settings(max_examples=3)
@given(data=st.data())
def test_stages_equal_the_whole(case: Case, composed, data) -> None:
    whole, in_stages = composed
    model = case[2]
    assert len(model.layers) > 20
    inner = data.draw(st.sets(st.integers(1, len(model.layers) - 1), max_size=4))
    uncut = in_stages(*case)
    assert in_stages(*case, inner).differs_from(uncut) == []
    expected = whole(*case)
    assert torch.allclose(uncut.loss, expected.loss, rtol=1e-6)
    for name, gradient in expected.gradients.items():
        assert torch.allclose(uncut.gradients[name], gradient, rtol=1e-4, atol=1e-7), name


def test_no_layer_without_a_name_of_the_models_own(case: Case) -> None:
    model = case[2]
    paths = {path for path, _ in model.model.named_modules()}
    plain = [layer.name.rpartition("_")[0] or layer.name for layer in model.layers]
    known = [n for n, layer in zip(plain, model.layers, strict=True) if {n, layer.name} & paths]
    assert len(known) > 0.8 * len(model.layers)
    assert sum(layer.parameter_bytes for layer in model.layers) == sum(
        weight.nbytes for weight in model.model.parameters() if weight.requires_grad
    )


@pytest.mark.parametrize("name", ["gpt2", "t5", "mixtral"])
def test_blocks_are_closed(tmp_path: Path, name: str, composed) -> None:
    _, in_stages = composed
    case = prepared(tmp_path, name, "blocks")
    names = [layer.name for layer in case[2].layers]
    blocks = {"gpt2": "transformer.h.1", "t5": "decoder.block.1", "mixtral": "model.layers.1"}
    assert blocks[name] in names
    assert len(names) < 20
    everywhere = set(range(1, len(names)))
    assert in_stages(*case, everywhere).differs_from(in_stages(*case)) == []


@pytest.mark.parametrize("name", ["llama", "t5", "mixtral"])
def test_half_precision_is_cut_too(tmp_path: Path, name: str) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, _, model = prepared(tmp_path, name, "fine")
    assert len(model.layers) > 20
    assert torch.bfloat16 in {spec.dtype for bundle in model.specs for spec in bundle}


@pytest.mark.parametrize("name", ["gpt2", "qwen2", "bert"])
def test_tied_weights_are_told_and_can_be_untied(tmp_path: Path, name: str) -> None:
    loaded = definition(tmp_path, name, length=8)
    found = prepare(loaded, loaded.example(2), granularity="blocks")
    assert any("share" in note and "every microbatch" in note for note in found.notes)
    loaded = definition(tmp_path, name, length=8, tied=False)
    assert prepare(loaded, loaded.example(2), granularity="blocks").notes == ()


def test_examples_are_of_the_length_and_task(tmp_path: Path) -> None:
    inputs, targets = definition(tmp_path, "bert", length=12).example(4)
    text, mask = inputs
    assert text.shape == mask.shape == targets.shape == (4, 12)
    assert int(mask[0].sum()) == 9
    assert int((targets >= 0).sum()) == 8
    inputs, targets = definition(tmp_path, "roberta").example(4)
    assert targets.shape == (4,)
    assert definition(tmp_path, "vit").example(4)[0][0].shape == (4, 3, 16, 16)


def test_the_task_can_be_chosen(tmp_path: Path) -> None:
    loaded = definition(tmp_path, "bert", length=8, task="sequence-classification")
    assert type(loaded.model()).__name__ == "BertForSequenceClassification"


@pytest.mark.parametrize(
    ("fields", "parameters", "message"),
    [
        ({"model_type": "gpt2"}, {}, "no task '' can be read"),
        ({"model_type": "gpt2"}, {"task": "cooking"}, "no task 'cooking'"),
        ({"model_type": "none-such", "architectures": ["XForCausalLM"]}, {}, "cannot build it"),
        ({"model_type": "gpt2", "architectures": ["XForCausalLM"]}, {"width": 3}, "no parameter"),
    ],
)
def test_configs_that_lead_nowhere(tmp_path: Path, fields, parameters, message: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(fields))
    with pytest.raises(DefinitionFailed, match=message):
        load(file, parameters)


def test_an_impossible_size_is_the_configs_fault(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llama", **CONFIGS["llama"], "hidden_size": 15}))
    with pytest.raises(DefinitionFailed, match=r"config\.json: transformers cannot build it"):
        load(file, {"length": 8}).model()
