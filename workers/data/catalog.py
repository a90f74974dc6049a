"""The data sets by the name of their form, checked and brought to the model's shape."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import torch
from torch import Tensor

from backend.errors import InvalidInput
from backend.runs.request.spec import DataSpec
from workers.data.augmentation import augmented
from workers.data.errors import DataFailed
from workers.data.forms import huggingface, images, jsonl, numpy, python, ready, tables, text
from workers.data.request import DataRequest
from workers.data.split import DataSet, Split, Subset
from workers.data.unlike import ADVICE, shape_text
from workers.definitions.definition import LoadedDefinition, LossOfInputs, answers
from workers.definitions.samples import Batch

Source = Callable[[DataRequest], DataSet]
NO_FILE = ("digits", "synthetic", "definition")

CATALOG: dict[str, Source] = {
    "digits": ready.digits,
    "synthetic": ready.synthetic,
    "definition": ready.own,
    "numpy": numpy.load,
    "parquet": tables.parquet,
    "csv": tables.csv,
    "jsonl": jsonl.load,
    "images": images.load,
    "text": text.load,
    "huggingface": huggingface.load,
    "python": python.load,
}
"""One function for each of `backend.runs.request.data_forms.FORMS`."""


def load(
    spec: DataSpec, definition: LoadedDefinition, place: str = "", tokenizer: str = ""
) -> DataSet:
    """The data set that `spec` names, or the definition's default; `place` is its path as this
    process sees it, `tokenizer` that of the tokenizer. Raises `InvalidInput` on an unknown form
    and `DataFailed` on data that cannot be read or learned from."""
    name = spec.name or definition.data_name
    if name not in CATALOG:
        raise InvalidInput(
            f"there is no data set {name!r}", f"Choose one of {', '.join(sorted(CATALOG))}."
        )
    request = DataRequest(spec, place, definition, tokenizer)
    found = CATALOG[name](request)
    if not found.num_train:
        raise DataFailed(f"{found.name} has no samples to train on", "Give data with samples.")
    if not found.num_held_out:
        found = replace(found, held_out=None)
    found = found if name in NO_FILE else _fitted(found, request)
    found = augmented(found, spec.pictures)
    return found.answered() if isinstance(definition.loss, LossOfInputs) else found


def example(definition: LoadedDefinition, batch: int) -> Batch:
    """One batch of inputs and targets: the definition's `example`, else its data's first ones."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if definition.has_example:
            inputs, targets = definition.example(batch)
            return inputs, answers(definition.loss, inputs, targets)
    return load(DataSpec(), definition).first(batch)


def _fitted(found: DataSet, request: DataRequest) -> DataSet:
    """The same with the inputs in the shape of the model's example, where that is one tensor
    of as many values. Raises `DataFailed` where it has another number of them."""
    inputs, wanted = found.first(1)[0], request.wanted
    if not isinstance(inputs, Tensor) or wanted is None or found.train.lengths is not None:
        return found
    given = tuple(inputs.shape[1:])
    if given == wanted or found.vocabulary or _is_sequence(inputs, wanted):
        return found
    if prod(given) != prod(wanted):
        raise DataFailed(
            f"{found.name} gives {prod(given)} values per sample {shape_text(given)}, and the "
            f"model's example has {prod(wanted)} {shape_text(wanted)}",
            ADVICE,
        )

    def shaped(part: Split) -> Split:
        everything = torch.arange(len(part))
        return Subset(part, everything, lambda tensor: tensor.reshape(-1, *wanted))

    held_out = None if found.held_out is None else shaped(found.held_out)
    return replace(found, train=shaped(found.train), held_out=held_out)


def _is_sequence(inputs: Tensor, wanted: tuple[int, ...]) -> bool:
    """Tokens come in any length."""
    return inputs.dim() == 2 and len(wanted) == 1 and not inputs.is_floating_point()
