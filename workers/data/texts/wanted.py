"""The inputs that a model of texts takes, by name and in the form of its example."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from backend.runs.request.text_spec import TextTask
from workers.data.errors import DataFailed
from workers.definitions.definition import LoadedDefinition
from workers.definitions.errors import DefinitionFailed
from workers.definitions.samples import Samples, tensors

Make = Callable[[], Tensor]
_USUAL: dict[TextTask, tuple[str, ...]] = {
    "causal": ("input_ids", "attention_mask", "position_ids"),
    "masked": ("input_ids", "attention_mask", "position_ids"),
    "seq2seq": ("input_ids", "decoder_input_ids", "attention_mask", "decoder_attention_mask"),
}
"""What the inputs of an example are that has no names, in its order."""


@dataclass(frozen=True, slots=True)
class WantedInputs:
    """`like` are those of the model's example, by name. `form`: one tensor, several in order, or
    several by name."""

    like: Mapping[str, Tensor]
    form: type

    @property
    def keeps_apart(self) -> bool:
        """Whether the model is told which tokens are of one text."""
        mask = self.like.get("attention_mask")
        return "position_ids" in self.like or (mask is not None and mask.dim() > 2)

    def of(self, makers: Mapping[str, Make]) -> Samples:
        """Its inputs, each as its maker gives it. Raises `DataFailed`."""
        if unknown := [name for name in self.like if name not in makers]:
            raise DataFailed(
                f"the model takes {', '.join(unknown)}, which texts do not give",
                f"Name its inputs among {', '.join(makers)}.",
            )
        found = {name: makers[name]() for name in self.like}
        if self.form is dict:
            return found
        return tuple(found.values()) if self.form is tuple else next(iter(found.values()))


def wanted(definition: LoadedDefinition, task: TextTask) -> WantedInputs:
    """As its example has them; without an example tokens alone, and of a decoder too. Raises
    `DataFailed`, also where the model learns another task."""
    learned = definition.texts.task
    if learned not in (None, task):
        raise DataFailed(
            f"the model is made for the task {learned}, and the texts for {task}",
            f"Choose {learned} (--task {learned}), or a model of the other kind (--set task=...).",
        )
    names = definition.texts.names or _USUAL[task]
    try:
        inputs = definition.example(2)[0] if definition.has_example else None
    except DefinitionFailed:
        inputs = None
    if inputs is None:
        least = 2 if task == "seq2seq" else 1
        return WantedInputs(dict.fromkeys(names[:least], torch.zeros(0)), tuple)
    if isinstance(inputs, dict):
        return WantedInputs(inputs, dict)
    given = tensors(inputs)
    if len(given) > len(names):
        raise DataFailed(
            f"the model's example has {len(given)} inputs, of which texts give {len(names)}: "
            f"{', '.join(names)}",
            "Let the example give its inputs by name, in a dict.",
        )
    return WantedInputs(dict(zip(names, given, strict=False)), type(inputs))


def mask_like(example: Tensor | None, texts: Tensor, is_causal: bool) -> Tensor:
    """Which tokens may be attended to, where `texts` (samples, length) numbers the text of each
    and padding is -1: per token, or of three dimensions and more per pair of tokens of one text.
    A mask of fractions is one to add, 0 or the least number; others are 1 or 0."""
    if example is None or example.dim() < 3:
        allowed = texts >= 0
    else:
        allowed = texts[:, :, None] == texts[:, None, :]
        if is_causal:
            allowed = allowed.tril()
        for _ in range(example.dim() - 3):
            allowed = allowed.unsqueeze(1)
    dtype = torch.long if example is None else example.dtype
    if not dtype.is_floating_point or allowed.dim() == 2:
        return allowed.to(dtype)
    return torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)


def positions(texts: Tensor) -> Tensor:
    """The place of each token in its text, as far as the sample holds it; padding likewise."""
    places = torch.arange(texts.shape[1]).expand_as(texts)
    begins = torch.ones_like(texts, dtype=torch.bool)
    begins[:, 1:] = texts[:, 1:] != texts[:, :-1]
    return places - torch.where(begins, places, 0).cummax(1).values
