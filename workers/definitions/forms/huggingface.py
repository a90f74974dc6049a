"""A Hugging Face config.json: the model of transformers that it describes, without weights."""

import inspect
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from backend.definitions.forms import task_of
from backend.errors import first_line
from backend.runs.request.text_spec import TextTask
from workers.definitions.adapters import Adapters, adapt
from workers.definitions.blueprint.seeded import seeded
from workers.definitions.definition import Loss, Values
from workers.definitions.errors import DefinitionFailed
from workers.definitions.forms.tasks import TASKS, ExampleSizes, Task
from workers.definitions.samples import Batch
from workers.definitions.text_inputs import TextInputs
from workers.definitions.units import Granularity

LENGTH = 128
BEHIND_PADDING = ("roberta", "longformer", "mpnet", "camembert", "xmod", "luke", "esm", "ibert")
"""Models, by a part of their type, whose positions begin behind those of the padding token."""
LEARNED: Mapping[str, TextTask] = {
    "causal-lm": "causal",
    "masked-lm": "masked",
    "seq2seq-lm": "seq2seq",
}


@dataclass(frozen=True)
class HuggingFaceConfig:
    """`config` is transformers' own; `length` counts the tokens of a sample; `apart`: the model is
    given positions, by which it keeps packed texts apart; `adapters`: what is trained beside a
    frozen base (None: the model itself)."""

    file: Path
    config: Any
    task: str
    length: int
    apart: bool = False
    adapters: Adapters | None = None

    data_name = "synthetic"
    has_example = True
    granularity: ClassVar[Granularity] = "blocks"
    log: ClassVar[None] = None
    metrics: ClassVar[None] = None

    @property
    def loss(self) -> Loss:
        """The task's usual one: mostly cross entropy, without targets of -100."""
        return self._task.loss_of(self.config)

    @property
    def companions(self) -> Mapping[str, str]:
        return {"config.json": str(self.config.to_json_string())}

    @property
    def texts(self) -> TextInputs:
        text = self.config.get_text_config()
        return TextInputs(
            tuple(self._task.inputs),
            getattr(text, "vocab_size", None),
            _known(self.config),
            getattr(self.config, "decoder_start_token_id", None),
            LEARNED.get(self.task),
        )

    def model(self, seed: int = 0) -> nn.Module:
        return seeded(self.build, seed)

    def build(self) -> nn.Module:
        """Takes the example's inputs by position and returns what the loss takes, alone."""
        import transformers

        try:
            auto = getattr(transformers, self._task.auto)
            model: nn.Module = auto.from_config(self.config, dtype=torch.float32)
        except Exception as error:
            raise _failed(self.file, error) from error
        base, names, taken = type(model), tuple(self._task.inputs), self._task.output
        if self.apart and "position_ids" not in inspect.signature(base.forward).parameters:
            raise DefinitionFailed(
                f"{self.file.name}: a {base.__name__} takes no position_ids",
                "Leave the parameter apart out: packed texts see each other then.",
            )
        if self.adapters is not None:
            adapt(model, self.adapters)

        def forward(self: nn.Module, *given: Tensor) -> Any:
            return taken(base.forward(self, **dict(zip(names, given, strict=True))))

        model.__class__ = type(base.__name__, (base,), {"forward": forward, "__module__": __name__})
        return model.train()

    def example(self, batch: int) -> Batch:
        sizes = ExampleSizes(self.config, self.length)
        inputs = tuple(draw(sizes, batch) for draw in self._task.inputs.values())
        return inputs, self._task.targets_of(sizes, batch, inputs)

    def data(self) -> tuple[Batch, Batch]:
        raise DefinitionFailed(
            f"{self.file.name}: a config has no data of its own", "Train on the synthetic set."
        )

    @property
    def _task(self) -> Task:
        task = TASKS[self.task].for_model(self.config)
        if not self.apart:
            return task
        return replace(task, inputs=task.inputs | {"position_ids": ExampleSizes.positions})


def load_config(file: Path, parameters: Values) -> HuggingFaceConfig:
    """Read `file`. `parameters`: task, length (tokens), tied (are the words' vectors shared with
    the output), apart (packed texts), lora (the rank of adapters), lora_alpha, lora_layers.
    Raises `DefinitionFailed`; nothing is fetched from anywhere."""
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
    apart = bool(values.pop("apart", False)) and task == "causal-lm"
    rank, alpha = int(values.pop("lora", 0)), float(values.pop("lora_alpha", 0))
    layers = tuple(str(values.pop("lora_layers", "")).replace(",", " ").split())
    adapters = Adapters(rank, (alpha or rank) / rank, layers) if rank > 0 else None
    if values:
        raise DefinitionFailed(f"{file.name}: a config has no parameter {', '.join(values)}")
    config = _config(file, fields)
    if tied is not None:
        config.tie_word_embeddings = bool(tied)
    length = length or min(LENGTH, _longest(config))
    return HuggingFaceConfig(file, config, task, length, apart, adapters)


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
    known = _known(config)
    return LENGTH if known is None else known


def _known(config: Any) -> int | None:
    """Positions that the model knows: of its decoder where it hears, of its text otherwise; None
    where it does not say."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    fields = ("max_target_positions", "max_position_embeddings")
    known = [found for name in fields if (found := getattr(text, name, None)) and found > 0]
    behind = any(part in text.model_type for part in BEHIND_PADDING)
    return max(1, int(known[0]) - 2 * behind) if known else None


def _failed(file: Path, error: Exception) -> DefinitionFailed:
    return DefinitionFailed(f"{file.name}: transformers cannot build it: {first_line(error)}")
