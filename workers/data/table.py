"""Columns of a table as inputs and targets."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from backend.runs.request.spec import DataSpec
from backend.units import count_text
from workers.data.errors import DataFailed
from workers.data.fitted import FittedColumns
from workers.data.pictures import Pictures, Size, size_of
from workers.data.ragged import Ragged
from workers.data.split import Split, TensorSplit
from workers.data.values import target, tensor_of
from workers.definitions.samples import Samples

Column = Tensor | list[Tensor] | list[bytes]
"""Values side by side, a list per sample of another length, or pictures."""


def part_of(
    table: pa.Table,
    spec: DataSpec,
    size: Size | None,
    file: str,
    fitted: FittedColumns | None = None,
) -> Split:
    """The samples of a table, a row each: the last column is the target and the others the
    inputs, unless the spec chooses. Words among the inputs are categories, as `fitted` has them;
    without it every row is one to train on. Raises `DataFailed`."""
    fitted = fitted or FittedColumns(torch.arange(len(table)), spec.table)
    names = table.column_names
    targets = spec.targets or tuple(names[-1:])
    inputs = spec.inputs or tuple(name for name in names if name not in targets)
    _check_names(names, inputs, targets, file)
    answers = _joined([_target(table, name, file) for name in targets], "targets", file)
    words = [name for name in inputs if _is_words(table.column(name).type)]
    if words:
        return TensorSplit(_with_words(table, inputs, words, fitted, file), _alike(answers, file))
    columns = [_column(table, name, file, fitted) for name in inputs]
    if len(columns) == 1 and isinstance(columns[0], list):
        return _of_list(columns[0], answers, size, file)
    whole = [column for column in columns if isinstance(column, Tensor)]
    if len(whole) < len(columns) or not isinstance(answers, Tensor | tuple):
        raise DataFailed(
            f"{file}: {', '.join(inputs)} do not go together: lists of different lengths and "
            "pictures must be the only input",
            "Choose one of these columns with the inputs.",
        )
    return TensorSplit(_joined(whole, "inputs", file), answers)


def _is_words(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _with_words(
    table: pa.Table, inputs: Sequence[str], words: Sequence[str], fitted: FittedColumns, file: str
) -> Samples:
    """Numbers side by side with categories: as columns of 1 and 0, or apart from them."""
    if not len(table):
        raise DataFailed(f"{file} has no rows", "Give a file with samples.")
    found: dict[str, Tensor] = {}
    for name in inputs:
        if name in words:
            column = table.column(name)
            is_coded = pa.types.is_dictionary(column.type)
            plain = column.cast(column.type.value_type) if is_coded else column
            found[name] = fitted.of_words(plain, name)
            continue
        value = _column(table, name, file, fitted)
        if not isinstance(value, Tensor):
            raise DataFailed(
                f"{file}: {name!r} does not go together with words: it holds lists or pictures",
                "Choose columns of words and numbers.",
            )
        found[name] = value.reshape(len(value), -1).float()
    if not fitted.takes_numbers_of_words:
        return torch.cat([found[name] for name in inputs], 1)
    numbers = [found[name] for name in inputs if name not in words]
    beside = torch.cat(numbers, 1) if numbers else None
    return fitted.arranged(beside, [found[name] for name in words])


def _alike(answers: Samples | list[Tensor], file: str) -> Samples:
    if isinstance(answers, list):
        raise DataFailed(
            f"{file}: targets of different lengths do not go together with words",
            "Choose one target of one length.",
        )
    return answers


def _check_names(
    names: Sequence[str], inputs: tuple[str, ...], targets: tuple[str, ...], file: str
) -> None:
    if unknown := [name for name in (*inputs, *targets) if name not in names]:
        raise DataFailed(
            f"{file} has no column {', '.join(map(repr, unknown))}",
            f"It has {', '.join(names) or 'none'}.",
        )
    if not inputs:
        raise DataFailed(
            f"{file} has {len(names)} columns: too few for inputs and targets",
            "Give a file with a heading and at least two columns.",
        )


def _of_list(
    column: list[Any], answers: Samples | list[Tensor], size: Size | None, file: str
) -> Split:
    if isinstance(column[0], bytes) and isinstance(answers, Tensor):
        return Pictures(column, answers, size or size_of(column[0]))
    if isinstance(column[0], bytes) or not isinstance(answers, Tensor | list):
        raise DataFailed(
            f"{file}: pictures and lists of different lengths take targets of one column, a "
            "picture a label",
            "Choose one target.",
        )
    return Ragged(column, answers)


def _joined(columns: Sequence[Any], what: str, file: str) -> Any:
    """One tensor for scalars side by side, the column itself where it is alone, else several."""
    if len(columns) == 1:
        only = columns[0]
        is_plain = isinstance(only, Tensor) and only.dim() == 1
        return only.unsqueeze(1).float() if is_plain and what == "inputs" else only
    if not all(isinstance(column, Tensor) for column in columns):
        raise DataFailed(f"{file}: several {what} of different lengths", "Choose one of them.")
    if all(column.dim() <= 2 and column[0].numel() == 1 for column in columns):
        return torch.stack([column.flatten() for column in columns], 1).float()
    return tuple(columns)


def _target(table: pa.Table, name: str, file: str) -> Tensor | list[Tensor]:
    """Labels as numbers: words are counted in the order of the alphabet."""
    column = table.column(name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        _check_full(column, name, file)
        classes = sorted(pc.unique(column).to_pylist())
        found = pc.index_in(column, pa.array(classes, column.type))
        return torch.tensor(found.to_pylist(), dtype=torch.long)
    values = _column(table, name, file)
    if isinstance(values, Tensor):
        return target(values)
    if isinstance(values[0], bytes):
        raise DataFailed(f"{file}: column {name!r} holds pictures", "Choose another target.")
    return [value for value in values if isinstance(value, Tensor)]


def _column(table: pa.Table, name: str, file: str, fitted: FittedColumns | None = None) -> Column:
    column = table.column(name)
    if fitted is not None and _is_numbers(column.type):
        column = fitted.of_numbers(column, name, file)
    column = column.combine_chunks()
    _check_full(column, name, file)
    kind = column.type
    if isinstance(kind, pa.ExtensionType):
        column, kind = column.storage, kind.storage_type
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        column = column.field("bytes")
        _check_full(column, name, file)
        kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        pictures: list[bytes] = column.to_pylist()
        return pictures
    if pa.types.is_nested(kind):
        return _of_lists(column.to_pylist(), name, file)
    if not (_is_numbers(kind) or pa.types.is_boolean(kind)):
        raise DataFailed(
            f"{file}: column {name!r} holds {kind}, not numbers",
            "Choose the columns with numbers as inputs.",
        )
    return tensor_of(column.to_numpy(zero_copy_only=False), f"column {name!r}", file)


def _is_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _of_lists(rows: list[Any], name: str, file: str) -> Tensor | list[Tensor]:
    """One tensor where all rows are alike, else one per row."""
    try:
        each = [torch.tensor(row) for row in rows]
    except (ValueError, TypeError) as fault:
        raise DataFailed(f"{file}: column {name!r} holds no numbers: {fault}") from None
    what = f"column {name!r}"
    each = [tensor_of(value.numpy(), what, file) for value in each]
    return torch.stack(each) if len({value.shape for value in each}) == 1 else each


def _check_full(column: Any, name: str, file: str) -> None:
    if not len(column):
        raise DataFailed(f"{file} has no rows", "Give a file with samples.")
    if column.null_count:
        raise DataFailed(
            f"{file}: column {name!r} has {count_text(column.null_count, 'empty cell')} "
            f"of {len(column):,}",
            "Fill them (--fill puts the mean there), remove these rows, or choose other columns.",
        )
