"""Tables in files: Parquet and CSV."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch

from backend.errors import first_line
from backend.runs.request.data_forms import FORMS
from workers.data.errors import DataFailed
from workers.data.files import parted
from workers.data.fitted import FittedColumns
from workers.data.request import DataRequest
from workers.data.split import DataSet, Subset, rows_held_out
from workers.data.table import part_of
from workers.data.texts.records import TextRecord
from workers.data.texts.text_data import TextData

Read = Callable[[Path], pa.Table]


def parquet(request: DataRequest) -> DataSet:
    """All .parquet files; those named train and test are the two parts."""
    return _load(request, ".parquet", pyarrow.parquet.read_table)


def csv(request: DataRequest) -> DataSet:
    """All .csv files, which begin with a heading."""
    return _load(request, ".csv", pyarrow.csv.read_csv)


def joined(request: DataRequest, train: list[Path], held_out: list[Path], read: Read) -> DataSet:
    """One part per list of files, made of one table, so that words mean the same labels in
    both. Raises `DataFailed` where a file cannot be read or has other columns."""
    name = train[0].name if len(train) == 1 else str(request.path)
    tables = [_read(file, read) for file in (*train, *held_out)]
    if request.tokenizer:
        parts = tables[: len(train)], tables[len(train) :]
        return TextData(request, name).data_set(*(_records(part, name) for part in parts))
    _check_alike(tables, [*train, *held_out])
    table = pa.concat_tables(tables, promote_options="default")
    count = sum(len(each) for each in tables[: len(train)])
    numbers = torch.arange(len(table))
    own, rest = numbers[:count], numbers[count:]
    if not held_out:
        own, rest = rows_held_out(len(table), request.spec.held_out)
    fitted = FittedColumns(own, request.spec.table, request.like)
    part = part_of(table, request.spec, request.size, name, fitted)
    kept = Subset(part, rest) if len(rest) else None
    return DataSet(Subset(part, own), kept, name, tuple(fitted.notes))


def _load(request: DataRequest, suffix: str, read: Read) -> DataSet:
    train, held_out = parted(request.path, (suffix,), FORMS[suffix[1:]].path)
    return joined(request, train, held_out, read)


def _read(file: Path, read: Read) -> pa.Table:
    try:
        return read(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        reason = f"{file.name} cannot be read: {first_line(fault)}"
        raise DataFailed(reason, "Write the file again.") from None


def _records(tables: list[pa.Table], name: str) -> list[TextRecord]:
    rows = (row for table in tables for row in table.to_pylist())
    return [TextRecord(row, f"{name}, row {number}") for number, row in enumerate(rows, start=1)]


def _check_alike(tables: list[pa.Table], files: list[Path]) -> None:
    first = tables[0].column_names
    for table, file in zip(tables[1:], files[1:], strict=True):
        if table.column_names != first:
            raise DataFailed(
                f"{file.name} has columns {', '.join(table.column_names)}, "
                f"{files[0].name} has {', '.join(first)}",
                "Give files of the same columns.",
            )
