"""Adapters beside the layers of a model of transformers, put in and added to its weights."""

from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, LlamaConfig

from workers.definitions.adapters import adapter_names, merged
from workers.definitions.errors import DefinitionFailed
from workers.definitions.loader import load

SIZES = {"vocab_size": 40, "use_cache": False, "bos_token_id": 0, "eos_token_id": 0}
CONFIGS = {
    "gpt2": GPT2Config(
        **SIZES,
        n_embd=8,
        n_layer=2,
        n_head=2,
        n_positions=12,
        architectures=["GPT2LMHeadModel"],
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    ),
    "llama": LlamaConfig(
        **SIZES,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=12,
        architectures=["LlamaForCausalLM"],
    ),
}


@pytest.fixture(params=CONFIGS)
def config(request, tmp_path: Path) -> Path:
    CONFIGS[request.param].save_pretrained(tmp_path)
    return tmp_path / "config.json"


def test_merged_weights_give_what_the_adapters_gave(config: Path) -> None:
    definition = load(config, {"lora": 2, "lora_alpha": 6.0})
    model, inputs = definition.model(3).eval(), torch.randint(40, (2, 12))
    plain = load(config).model(3).eval()
    frozen = {name: value for name, value in model.state_dict().items() if "lora" not in name}
    plain.load_state_dict(frozen)
    with torch.no_grad():
        assert torch.equal(model(inputs), plain(inputs))  # the product is 0 at first
        for name in adapter_names(model):
            model.get_parameter(name).normal_()
        given = model(inputs)
        assert not torch.allclose(given, plain(inputs), atol=1e-3)
        plain.load_state_dict(merged(model, model.state_dict()))
        assert torch.allclose(given, plain(inputs), rtol=1e-4, atol=1e-4)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == adapter_names(model)
    assert not [name for name in trained if "lm_head" in name]


def test_adapters_of_which_a_part_is_elsewhere_stay_apart(config: Path) -> None:
    model = load(config, {"lora": 2}).model(3)
    state = model.state_dict()
    first = sorted(adapter_names(model))[0]
    rest = {name: value for name, value in state.items() if name != first}
    found = merged(model, rest)
    assert adapter_names(model) & found.keys() == {first.replace("lora_A", "lora_B")}


def test_layers_are_chosen_by_their_names(config: Path) -> None:
    known = "c_attn" if "gpt2" in config.read_text() else "q_proj"
    model = load(config, {"lora": 2, "lora_layers": f"{known}, other"}).model(0)
    assert len(adapter_names(model)) == 2 * 2
    assert all(f".{known}." in name for name in adapter_names(model))
    with pytest.raises(DefinitionFailed, match="is called nothing_such") as caught:
        load(config, {"lora": 2, "lora_layers": "nothing_such"}).model(0)
    assert known in caught.value.advice


def test_packed_texts_are_kept_apart_by_their_positions(config: Path) -> None:
    """A text gives the same beside another one as alone."""
    model = load(config, {"apart": True, "length": 12}).model(1).eval()
    tokens = torch.randint(1, 40, (1, 12))
    places = torch.tensor([[*range(5), *range(7)]])
    with torch.no_grad():
        both = model(tokens, places)
        alone = model(tokens[:, 5:], places[:, 5:])
        seen = model(tokens, torch.arange(12)[None])
    assert torch.allclose(both[:, 5:], alone, atol=1e-5)
    assert not torch.allclose(seen[:, 5:], alone, atol=1e-3)
