"""A Hugging Face config.json: the model of transformers that it describes, without weights."""

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from backend.definitions.forms import task_of
from backend.errors import first_line
from workers.definitions.blueprint.seeded import seeded
from workers.definitions.definition import Loss, Values
from workers.definitions.errors import DefinitionFailed
from workers.definitions.samples import Batch
from workers.definitions.units import Granularity

IGNORED = -100
"""Targets that no loss counts, as transformers has it."""
LENGTH = 128
TASKS = {
    "causal-lm": "AutoModelForCausalLM",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "masked-lm": "AutoModelForMaskedLM",
    "sequence-classification": "AutoModelForSequenceClassification",
    "image-classification": "AutoModelForImageClassification",
}


@dataclass(frozen=True)
class HuggingFaceConfig:
    """`config` is transformers' own; `length` counts the tokens of a sample."""

    file: Path
    config: Any
    task: str
    length: int

    data_name = "synthetic"
    has_example = True
    granularity: ClassVar[Granularity] = "blocks"
    log: ClassVar[None] = None
    metrics: ClassVar[None] = None

    @property
    def loss(self) -> Loss:
        """Cross entropy of the logits' last dimension; targets of -100 do not count."""
        return _loss

    @property
    def companions(self) -> Mapping[str, str]:
        return {"config.json": str(self.config.to_json_string())}

    def model(self, seed: int = 0) -> nn.Module:
        return seeded(self.build, seed)

    def build(self) -> nn.Module:
        """Takes the example's inputs by position and returns the logits alone."""
        import transformers

        try:
            auto = getattr(transformers, TASKS[self.task])
            model: nn.Module = auto.from_config(self.config, dtype=torch.float32)
        except Exception as error:
            raise _failed(self.file, error) from error
        base, names = type(model), tuple(self._inputs)

        def forward(self: nn.Module, *given: Tensor) -> Any:
            return base.forward(self, **dict(zip(names, given, strict=True))).logits

        model.__class__ = type(base.__name__, (base,), {"forward": forward, "__module__": __name__})
        return model.train()

    def example(self, batch: int) -> Batch:
        inputs = tuple(make(batch) for make in self._inputs.values())
        return inputs, self._targets(batch, inputs[0])

    def data(self) -> tuple[Batch, Batch]:
        raise DefinitionFailed(
            f"{self.file.name}: a config has no data of its own", "Train on the synthetic set."
        )

    @cached_property
    def _inputs(self) -> dict[str, Callable[[int], Tensor]]:
        """What the model is given, by name, and how it is drawn."""
        match self.task:
            case "image-classification":
                return {"pixel_values": self._pictures}
            case "causal-lm":
                return {"input_ids": self._tokens}
            case "seq2seq-lm":
                return {"input_ids": self._tokens, "decoder_input_ids": self._tokens}
            case _:
                return {"input_ids": self._tokens, "attention_mask": self._mask}

    def _pictures(self, batch: int) -> Tensor:
        size = getattr(self.config, "image_size", 224)
        height, width = size if isinstance(size, list | tuple) else (size, size)
        return torch.randn(batch, getattr(self.config, "num_channels", 3), height, width)

    def _tokens(self, batch: int) -> Tensor:
        text = self.config.get_text_config()
        padding = getattr(text, "pad_token_id", None)
        first = 0 if padding is None else padding + 1
        return torch.randint(min(first, text.vocab_size - 1), text.vocab_size, (batch, self.length))

    def _mask(self, batch: int) -> Tensor:
        """The last quarter of every second sample is padding."""
        mask = torch.ones(batch, self.length, dtype=torch.long)
        mask[::2, self.length * 3 // 4 :] = 0
        return mask

    def _targets(self, batch: int, inputs: Tensor) -> Tensor:
        match self.task:
            case "image-classification" | "sequence-classification":
                return torch.randint(self.config.num_labels, (batch,))
            case "masked-lm":
                targets = torch.full_like(inputs, IGNORED)
                targets[:, ::7] = inputs[:, ::7]
                return targets
            case "causal-lm":
                targets = inputs.roll(-1, 1)
                targets[:, -1] = IGNORED
                return targets
            case _:
                return self._tokens(batch)


def load_config(file: Path, parameters: Values) -> HuggingFaceConfig:
    """Read `file`. `parameters`: task, length (tokens), tied (are the words' vectors shared with
    the output). Raises `DefinitionFailed`; nothing is fetched from anywhere."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    fields = json.loads(file.read_bytes())
    values = dict(parameters)
    task = str(values.pop("task", "") or task_of(fields))
    if task not in TASKS:
        raise DefinitionFailed(
            f"{file.name}: no task {task!r} can be read from it",
            f"Give the parameter task: {', '.join(TASKS)}.",
        )
    length, tied = int(values.pop("length", 0)), values.pop("tied", None)
    if values:
        raise DefinitionFailed(f"{file.name}: a config has no parameter {', '.join(values)}")
    config = _config(file, fields)
    if tied is not None:
        config.tie_word_embeddings = bool(tied)
    return HuggingFaceConfig(file, config, task, length or min(LENGTH, _longest(config)))


def _config(file: Path, fields: dict[str, Any]) -> Any:
    try:
        import transformers
    except ImportError:
        raise DefinitionFailed(
            f"{file.name}: this worker has no transformers", "Install it: pip install transformers"
        ) from None
    logging.getLogger("transformers").setLevel(logging.ERROR)
    rest = {k: v for k, v in fields.items() if k not in ("model_type", "auto_map", "torch_dtype")}
    try:
        config = transformers.AutoConfig.for_model(str(fields.get("model_type")), **rest)
    except Exception as error:
        raise _failed(file, error) from error
    config.use_cache = False
    return config


def _longest(config: Any) -> int:
    """Positions that the model knows; RoBERTa's begin behind its padding token."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = getattr(text, "max_position_embeddings", None) or LENGTH
    return max(1, int(positions) - 2) if "roberta" in text.model_type else int(positions)


def _loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(
        output.flatten(0, -2), target.flatten(), ignore_index=IGNORED
    )


def _failed(file: Path, error: Exception) -> DefinitionFailed:
    return DefinitionFailed(f"{file.name}: transformers cannot build it: {first_line(error)}")
