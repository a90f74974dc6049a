"""Models of transformers that hear: what a config says is given to them as they take it."""

import json
from pathlib import Path

import pytest
import torch

from workers.definitions.forms.huggingface import load_config

SMALL = {
    "vocab_size": 60,
    "num_labels": 3,
    "d_model": 16,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "classifier_proj_size": 8,
    "max_target_positions": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
WHISPER = {"num_mel_bins": 8, "max_source_positions": 12}
SPEECH = {"conv_channels": 16, "input_feat_per_channel": 8, "max_source_positions": 60}
AUDIO = "audio-classification"
W2V = {"feature_projection_input_dim": 24, "output_hidden_size": 16}


@pytest.mark.parametrize(
    ("kind", "name", "fields", "task", "shape"),
    [
        ("whisper", "WhisperForAudioClassification", WHISPER, AUDIO, (8, 24)),
        ("speech_to_text", "Speech2TextForConditionalGeneration", SPEECH, "audio-to-text", (40, 8)),
        ("wav2vec2-bert", "Wav2Vec2BertForSequenceClassification", W2V, AUDIO, (10, 24)),
        ("wav2vec2-bert", "Wav2Vec2BertForCTC", W2V, "audio-ctc", (10, 24)),
    ],
)
def test_a_spectrogram_is_drawn_as_the_model_takes_it(
    tmp_path: Path,
    kind: str,
    name: str,
    fields: dict[str, int],
    task: str,
    shape: tuple[int, ...],
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": kind, "architectures": [name]} | SMALL | fields))
    definition = load_config(file, {"length": 10})
    assert definition.task == task
    inputs, target = definition.example(2)
    assert inputs[0].shape == (2, *shape)
    loss = definition.loss(definition.model()(*inputs), target)
    assert torch.isfinite(loss)
    loss.backward()
