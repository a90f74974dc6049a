"""Architectures of transformers, small, as their config.json describes them."""

import json
from pathlib import Path

from workers.definitions.loader import LoadedDefinition, load

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 60,
    "max_position_embeddings": 32,
}
GROUPED = SIZES | {"num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2}
CONFIGS: dict[str, dict[str, object]] = {
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 32,
        "vocab_size": 60,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "llama": {"architectures": ["LlamaForCausalLM"]} | GROUPED,
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True} | GROUPED,
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": 4} | GROUPED,
    "bert": {"architectures": ["BertForMaskedLM"]} | SIZES,
    "roberta": {"architectures": ["RobertaForSequenceClassification"]} | SIZES,
    "t5": {
        "architectures": ["T5ForConditionalGeneration"],
        "d_model": 16,
        "d_ff": 32,
        "d_kv": 8,
        "num_layers": 2,
        "num_heads": 2,
        "vocab_size": 60,
    },
    "vit": {
        "architectures": ["ViTForImageClassification"],
        "image_size": 16,
        "patch_size": 4,
    }
    | SIZES,
    "mamba": {
        "architectures": ["MambaForCausalLM"],
        "hidden_size": 16,
        "state_size": 4,
        "num_hidden_layers": 2,
        "vocab_size": 60,
    },
    "mixtral": {
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    | GROUPED,
}
FURTHER: dict[str, dict[str, object]] = {
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 8} | GROUPED,
    "gemma": {"architectures": ["GemmaForCausalLM"], "head_dim": 8} | GROUPED,
    "gpt_neox": {"architectures": ["GPTNeoXForCausalLM"]} | SIZES,
    "distilbert": {
        "architectures": ["DistilBertForMaskedLM"],
        "dim": 16,
        "hidden_dim": 32,
        "n_layers": 2,
        "n_heads": 2,
        "vocab_size": 60,
    },
    "bart": {
        "architectures": ["BartForConditionalGeneration"],
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "vocab_size": 60,
        "max_position_embeddings": 32,
    },
}
"""More of them, for what is quick."""


def definition(folder: Path, name: str, **parameters: object) -> LoadedDefinition:
    file = folder / "config.json"
    file.write_text(json.dumps({"model_type": name} | (CONFIGS | FURTHER)[name]))
    return load(file, parameters or ({} if name == "vit" else {"length": 8}))
