"""NumPy's .npz: arrays by name, samples first."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from backend.runs.request.data_forms import FORMS
from backend.units import count_text
from workers.data.errors import DataFailed
from workers.data.files import parted
from workers.data.request import DataRequest
from workers.data.split import DataSet, TensorSplit, divided
from workers.data.values import target, tensor_of
from workers.definitions.samples import Samples, num_samples

Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of the inputs and of the targets."""

USUAL = (("x_train", "y_train", "x_test", "y_test"), ("x", "y"), ("inputs", "targets"))
"""Names that are taken without asking, the first that fit; else the first two arrays."""


def load(request: DataRequest) -> DataSet:
    """One file, which may hold a test part too (x_test, y_test), or train.npz and test.npz."""
    train, held_out = parted(request.path, (".npz",), FORMS["numpy"].path)
    arrays = _read(train[0])
    pair, other = _names(arrays, request, train[0])
    part = _part(arrays, pair, train[0])
    if held_out:
        return DataSet(part, _part(_read(held_out[0]), pair, held_out[0]), train[0].name)
    if other is not None:
        return DataSet(part, _part(arrays, other, train[0]), train[0].name)
    return divided(part, request.spec.held_out, train[0].name)


def _read(file: Path) -> dict[str, Any]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, BadZipFile, AttributeError) as fault:
        raise DataFailed(
            f"{file.name} is not an .npz file of numbers: {fault}", "Write it with numpy.savez."
        ) from None


def _names(arrays: dict[str, Any], request: DataRequest, file: Path) -> tuple[Pair, Pair | None]:
    """The names of (inputs, targets), and those of the held-out part where the file has one."""
    spec = request.spec
    usual = next((names for names in USUAL if all(name in arrays for name in names)), None)
    chosen = usual or tuple(arrays)[:2]
    if not (spec.inputs and spec.targets) and len(chosen) < 2:
        raise DataFailed(
            f"{file.name} has {count_text(len(arrays), 'array')}: too few for inputs and targets",
            "Keep both in one file: numpy.savez(file, x=..., y=...).",
        )
    if spec.inputs or spec.targets:
        return (spec.inputs or chosen[:1], spec.targets or chosen[1:2]), None
    pair = (chosen[:1], chosen[1:2])
    return pair, (chosen[2:3], chosen[3:]) if len(chosen) > 2 else None


def _part(arrays: dict[str, Any], pair: Pair, file: Path) -> TensorSplit:
    inputs, targets = pair
    for name in (*inputs, *targets):
        if name not in arrays:
            raise DataFailed(f"{file.name} has no array {name!r}", f"It has {', '.join(arrays)}.")
        if arrays[name].ndim == 0:
            raise DataFailed(f"{file.name}: {name} is a single number", "Samples come first.")
    given = _samples([tensor_of(arrays[n], n, file.name) for n in inputs])
    wanted = _samples([target(tensor_of(_labels(arrays[n]), n, file.name)) for n in targets])
    if num_samples(given) != num_samples(wanted) or num_samples(given) < 1:
        raise DataFailed(
            f"{file.name} has {num_samples(given)} inputs and {num_samples(wanted)} targets",
            "Give one target per sample.",
        )
    return TensorSplit(given, wanted)


def _labels(array: Any) -> Any:
    """Bytes are numbers of classes here, not pixels."""
    return array.astype(np.int64) if array.dtype == np.uint8 else array


def _samples(tensors: list[Any]) -> Samples:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)
