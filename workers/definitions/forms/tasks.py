"""The tasks of a Hugging Face config: what its model is given, what it gives, and its loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from workers.definitions.definition import Loss

IGNORED = -100
"""Targets that no loss counts, as transformers has it."""

Draw = Callable[["ExampleSizes", int], Tensor]
"""So many samples of one input, or of the targets."""


@dataclass(frozen=True, slots=True)
class ExampleSizes:
    """The sizes of an example: `length` counts its tokens, or a recording's frames."""

    config: Any
    length: int

    def pictures(self, batch: int) -> Tensor:
        seen = getattr(self.config, "vision_config", self.config)
        size = getattr(seen, "image_size", 224)
        height, width = size if isinstance(size, list | tuple) else (size, size)
        return torch.randn(batch, getattr(seen, "num_channels", 3), height, width)

    def tokens(self, batch: int) -> Tensor:
        text = self.config.get_text_config()
        padding = getattr(text, "pad_token_id", None)
        first = 0 if padding is None else padding + 1
        return torch.randint(min(first, text.vocab_size - 1), text.vocab_size, (batch, self.length))

    def sentence(self, batch: int) -> Tensor:
        """Tokens with one end of a sentence, where the mask ends: some heads look for it."""
        return self._ended(batch, 1)

    def question(self, batch: int) -> Tensor:
        """Tokens with three ends, of which the first two part a question from its text."""
        return self._ended(batch, 3)

    def _ended(self, batch: int, count: int) -> Tensor:
        tokens, text = self.tokens(batch), self.config.get_text_config()
        end = getattr(text, "sep_token_id", None) or getattr(text, "eos_token_id", None)
        if not isinstance(end, int) or not 0 < end < text.vocab_size or self.length < 2 * count:
            return tokens
        other = end + 1 if end + 1 < text.vocab_size else end - 1
        tokens = torch.where(tokens == end, other, tokens)
        last = self.mask(batch).sum(1, keepdim=True) - 1
        between = torch.tensor([self.length // 4, self.length // 4 + 1][: count - 1])
        return tokens.scatter(1, torch.cat([between.expand(batch, -1), last], 1).long(), end)

    def mask(self, batch: int) -> Tensor:
        """The last quarter of every second sample is padding."""
        mask = torch.ones(batch, self.length, dtype=torch.long)
        mask[::2, self.length * 3 // 4 :] = 0
        return mask

    def positions(self, batch: int) -> Tensor:
        """Two texts share every second sample."""
        places = torch.arange(self.length).repeat(batch, 1)
        places[::2, self.length // 2 :] -= self.length // 2
        return places

    def sound(self, batch: int) -> Tensor:
        """As many numbers as the convolutions make `length` frames of, or a whole spectrogram."""
        if hasattr(self.config, "conv_stride"):
            count = self.length
            layers = zip(self.config.conv_kernel, self.config.conv_stride, strict=True)
            for kernel, stride in reversed([*layers]):
                count = (count - 1) * stride + kernel
            return torch.randn(batch, count)
        return torch.randn(batch, self.config.max_length, self.config.num_mel_bins)

    def spectrogram(self, batch: int) -> Tensor:
        """Two frames of sound for every position of Whisper's encoder. Elsewhere as many as become
        `length` positions, their features last."""
        config, longest = self.config, self.config.max_source_positions
        if hasattr(config, "num_mel_bins"):
            return torch.randn(batch, config.num_mel_bins, 2 * longest)
        if hasattr(config, "feature_projection_input_dim"):
            return torch.randn(batch, self.length, config.feature_projection_input_dim)
        frames = min(self.length * 2**config.num_conv_layers, longest)
        return torch.randn(batch, frames, config.input_feat_per_channel * config.input_channels)

    def classes(self, batch: int) -> Tensor:
        return torch.randint(self.config.num_labels, (batch,))

    def class_of_each(self, batch: int) -> Tensor:
        return torch.randint(self.config.num_labels, (batch, self.length))

    def places(self, batch: int) -> Tensor:
        """The first and the last token of an answer, in the part that no mask covers."""
        return torch.randint(max(1, self.length // 2), (batch, 2)).sort(dim=1).values

    def nothing(self, batch: int) -> Tensor:
        return torch.zeros(batch)

    def words_heard(self, batch: int) -> Tensor:
        """Fewer than there are frames, none of them the blank."""
        count = max(1, self.length // 4)
        found = torch.randint(1, self.config.vocab_size, (batch, count))
        blank = self.config.pad_token_id or 0
        return torch.where(found == blank, (blank + 1) % self.config.vocab_size, found)


def shifted(tokens: Tensor) -> Tensor:
    """The next token of each."""
    targets = tokens.roll(-1, 1)
    targets[:, -1] = IGNORED
    return targets


def hidden(tokens: Tensor) -> Tensor:
    """Every seventh token."""
    targets = torch.full_like(tokens, IGNORED)
    targets[:, ::7] = tokens[:, ::7]
    return targets


def _logits(output: Any) -> Tensor:
    found: Tensor = output.logits
    return found


def _ends(output: Any) -> Tensor:
    return torch.stack([output.start_logits, output.end_logits], 1)


def _matches(output: Any) -> Tensor:
    found: Tensor = output.logits_per_image
    return found


def _cross_entropy(config: Any, output: Tensor, target: Tensor) -> Tensor:
    """Of the last dimension; targets of -100 do not count."""
    return functional.cross_entropy(output.flatten(0, -2), target.flatten(), ignore_index=IGNORED)


def _contrast(config: Any, output: Tensor, target: Tensor) -> Tensor:
    """Each picture with its own text among the microbatch's, and the other way round."""
    own = torch.arange(len(output), device=output.device)
    entropy = functional.cross_entropy
    return (entropy(output, own) + entropy(output.T, own)) / 2


def _alignments(config: Any, output: Tensor, target: Tensor) -> Tensor:
    """Connectionist temporal classification, a mean over the batch."""
    scores = output.float().log_softmax(-1).transpose(0, 1)
    frames = torch.full((len(target),), len(scores), dtype=torch.long)
    words = (target >= 0).sum(1)
    blank = config.pad_token_id or 0
    return functional.ctc_loss(scores, target.clamp(min=0), frames, words, blank)


@dataclass(frozen=True, slots=True)
class Task:
    """auto     the class of transformers that builds the model
    inputs   what it is given, by name
    targets  how they are drawn; of the tokens where it is one of them
    output   what the loss takes of what the model gives
    """

    auto: str
    inputs: dict[str, Draw]
    targets: Draw | Callable[[Tensor], Tensor]
    output: Callable[[Any], Tensor] = _logits
    loss: Callable[[Any, Tensor, Tensor], Tensor] = _cross_entropy

    def loss_of(self, config: Any) -> Loss:
        return partial(self.loss, config)

    def for_model(self, config: Any) -> "Task":
        """The same for a model of `config`: some hear a spectrogram, not a wave."""
        if "input_values" in self.inputs and hasattr(config, "max_source_positions"):
            return replace(self, inputs={"input_features": ExampleSizes.spectrogram})
        return self

    def targets_of(self, sizes: ExampleSizes, batch: int, inputs: tuple[Tensor, ...]) -> Tensor:
        if self.targets in (shifted, hidden):
            return self.targets(inputs[0])
        return self.targets(sizes, batch)  # type: ignore[call-arg,arg-type]


_TEXT: dict[str, Draw] = {"input_ids": ExampleSizes.tokens, "attention_mask": ExampleSizes.mask}
_SENTENCE = _TEXT | {"input_ids": ExampleSizes.sentence}
_QUESTION = _TEXT | {"input_ids": ExampleSizes.question}
_DECODED: dict[str, Draw] = {"decoder_input_ids": ExampleSizes.tokens}
TASKS = {
    "causal-lm": Task("AutoModelForCausalLM", {"input_ids": ExampleSizes.tokens}, shifted),
    "seq2seq-lm": Task(
        "AutoModelForSeq2SeqLM",
        {"input_ids": ExampleSizes.tokens} | _DECODED | {"attention_mask": ExampleSizes.mask},
        ExampleSizes.tokens,
    ),
    "masked-lm": Task("AutoModelForMaskedLM", _TEXT, hidden),
    "sequence-classification": Task(
        "AutoModelForSequenceClassification", _SENTENCE, ExampleSizes.classes
    ),
    "token-classification": Task(
        "AutoModelForTokenClassification", _TEXT, ExampleSizes.class_of_each
    ),
    "question-answering": Task(
        "AutoModelForQuestionAnswering", _QUESTION, ExampleSizes.places, _ends
    ),
    "image-classification": Task(
        "AutoModelForImageClassification",
        {"pixel_values": ExampleSizes.pictures},
        ExampleSizes.classes,
    ),
    "image-text": Task(
        "AutoModel",
        _TEXT | {"pixel_values": ExampleSizes.pictures},
        ExampleSizes.nothing,
        _matches,
        _contrast,
    ),
    "image-to-text": Task(
        "AutoModelForImageTextToText",
        {"input_ids": ExampleSizes.tokens, "pixel_values": ExampleSizes.pictures},
        shifted,
    ),
    "audio-classification": Task(
        "AutoModelForAudioClassification",
        {"input_values": ExampleSizes.sound},
        ExampleSizes.classes,
    ),
    "audio-ctc": Task(
        "AutoModelForCTC",
        {"input_values": ExampleSizes.sound},
        ExampleSizes.words_heard,
        loss=_alignments,
    ),
    "audio-to-text": Task(
        "AutoModelForSpeechSeq2Seq",
        {"input_features": ExampleSizes.spectrogram} | _DECODED,
        ExampleSizes.tokens,
    ),
}
