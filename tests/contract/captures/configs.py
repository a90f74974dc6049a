"""Thirty and more architectures of transformers as configs, small, without noise."""

from tests.unit.workers.architectures import CONFIGS, FURTHER, GROUPED, SIZES

_QUIET = dict.fromkeys(
    (
        *("attention_dropout", "attention_probs_dropout_prob", "hidden_dropout", "resid_pdrop"),
        *("hidden_dropout_prob", "dropout", "activation_dropout", "embd_pdrop", "attn_pdrop"),
        *("classifier_dropout", "dropout_rate", "drop_path_rate", "layerdrop", "final_dropout"),
        *("encoder_layerdrop", "decoder_layerdrop", "feat_proj_dropout", "embedding_dropout"),
        *("conv_dropout", "mask_time_prob", "mask_feature_prob", "summary_first_dropout"),
        *("summary_last_dropout", "emb_pdrop", "embed_dropout"),
    ),
    0.0,
)
"""Noise is drawn by stage: a run of two stages has another than one of one."""
_DECODER = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "vocab_size": 60,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_SPEECH = SIZES | {
    "conv_dim": [16, 16],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 2],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}
_TOWERS = {
    "text_config": SIZES | {"max_position_embeddings": 16, "eos_token_id": 2},
    "vision_config": SIZES | {"image_size": 16, "patch_size": 8},
    "projection_dim": 12,
}
_PICTURES = {"image_size": 32, "num_labels": 3}

NEW: dict[str, dict[str, object]] = {
    "albert": SIZES | {"architectures": ["AlbertForMaskedLM"], "embedding_size": 12},
    "bert_tokens": SIZES | {"model_type": "bert", "architectures": ["BertForTokenClassification"]},
    "bert_answers": SIZES | {"model_type": "bert", "architectures": ["BertForQuestionAnswering"]},
    "blip": _TOWERS
    | {
        "architectures": ["BlipForConditionalGeneration"],
        "text_config": SIZES
        | {
            "bos_token_id": 1,
            "eos_token_id": 2,
            "sep_token_id": 2,
            "pad_token_id": 0,
            "encoder_hidden_size": 16,
        },
    },
    "bloom": {
        "architectures": ["BloomForCausalLM"],
        "hidden_size": 16,
        "n_layer": 2,
        "n_head": 2,
        "vocab_size": 60,
    },
    "clip": _TOWERS | {"architectures": ["CLIPModel"]},
    "convnext": _PICTURES
    | {
        "architectures": ["ConvNextForImageClassification"],
        "hidden_sizes": [4, 6, 8, 10],
        "depths": [1, 1, 1, 1],
    },
    "deberta-v2": SIZES
    | {
        "architectures": ["DebertaV2ForMaskedLM"],
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "type_vocab_size": 0,
    },
    "deit": SIZES
    | {"architectures": ["DeiTForImageClassification"], "image_size": 16, "patch_size": 8},
    "electra": SIZES | {"architectures": ["ElectraForTokenClassification"], "embedding_size": 12},
    "falcon": {
        "architectures": ["FalconForCausalLM"],
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 60,
        "max_position_embeddings": 32,
    },
    "gptj": {
        "architectures": ["GPTJForCausalLM"],
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 32,
        "vocab_size": 60,
        "rotary_dim": 4,
    },
    "hubert": _SPEECH | {"architectures": ["HubertForSequenceClassification"]},
    "longformer": SIZES
    | {
        "architectures": ["LongformerForMaskedLM"],
        "attention_window": 4,
        "max_position_embeddings": 34,
    },
    "olmo": GROUPED | {"architectures": ["OlmoForCausalLM"], "pad_token_id": 0},
    "opt": {
        "architectures": ["OPTForCausalLM"],
        "hidden_size": 16,
        "ffn_dim": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 60,
        "max_position_embeddings": 32,
        "word_embed_proj_dim": 16,
    },
    "pegasus": _DECODER | {"architectures": ["PegasusForConditionalGeneration"]},
    "phi": GROUPED | {"architectures": ["PhiForCausalLM"], "num_key_value_heads": 2},
    "resnet": _PICTURES
    | {
        "architectures": ["ResNetForImageClassification"],
        "embedding_size": 4,
        "hidden_sizes": [4, 8],
        "depths": [1, 1],
        "layer_type": "basic",
    },
    "rwkv": {
        "architectures": ["RwkvForCausalLM"],
        "hidden_size": 16,
        "attention_hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "vocab_size": 60,
        "context_length": 32,
    },
    "swin": _PICTURES
    | {
        "architectures": ["SwinForImageClassification"],
        "patch_size": 4,
        "embed_dim": 8,
        "depths": [2, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "switch_transformers": {
        "architectures": ["SwitchTransformersForConditionalGeneration"],
        "d_model": 16,
        "d_ff": 32,
        "d_kv": 8,
        "num_layers": 2,
        "num_heads": 2,
        "vocab_size": 60,
        "num_experts": 2,
        "expert_capacity": 8,
        "num_sparse_encoder_layers": 1,
        "num_sparse_decoder_layers": 1,
        "num_decoder_layers": 2,
        "router_jitter_noise": 0.0,
    },
    "wav2vec2": _SPEECH | {"architectures": ["Wav2Vec2ForCTC"]},
    "whisper": _DECODER
    | {
        "architectures": ["WhisperForConditionalGeneration"],
        "num_mel_bins": 8,
        "max_source_positions": 12,
        "max_target_positions": 16,
    },
    "xlnet": {
        "architectures": ["XLNetForSequenceClassification"],
        "d_model": 16,
        "n_layer": 2,
        "n_head": 2,
        "d_inner": 32,
        "vocab_size": 60,
    },
}
"""By model_type, or a name of its own with a model_type."""
_DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")


def _shallow(fields: dict[str, object]) -> dict[str, object]:
    """With one block in place of two: a capture takes as long as the model is deep."""
    inner = {name: _shallow(each) for name, each in fields.items() if isinstance(each, dict)}
    return fields | {name: 1 for name in _DEPTHS if name in fields} | inner


_DEEP = ("rwkv",)
"""Divides by its depth less one."""
ARCHITECTURES = {
    name: {"model_type": name} | _QUIET | (fields if name in _DEEP else _shallow(fields))
    for name, fields in (CONFIGS | FURTHER | NEW).items()
}
