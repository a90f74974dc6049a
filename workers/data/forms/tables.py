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
from workers.data.request import DataRequest
from workers.data.split import DataSet, Subset, divided
from workers.data.table import part_of

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
    _check_alike(tables, [*train, *held_out])
    part = part_of(
        pa.concat_tables(tables, promote_options="default"), request.spec, request.size, name
    )
    count = sum(len(table) for table in tables[: len(train)])
    if not held_out:
        return divided(part, request.spec.held_out, name)
    numbers = torch.arange(len(part))
    return DataSet(Subset(part, numbers[:count]), Subset(part, numbers[count:]), name)


def _load(request: DataRequest, suffix: str, read: Read) -> DataSet:
    train, held_out = parted(request.path, (suffix,), FORMS[suffix[1:]].path)
    return joined(request, train, held_out, read)


def _read(file: Path, read: Read) -> pa.Table:
    try:
        return read(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        reason = f"{file.name} cannot be read: {first_line(fault)}"
        raise DataFailed(reason, "Write the file again.") from None


def _check_alike(tables: list[pa.Table], files: list[Path]) -> None:
    first = tables[0].column_names
    for table, file in zip(tables[1:], files[1:], strict=True):
        if table.column_names != first:
            raise DataFailed(
                f"{file.name} has columns {', '.join(table.column_names)}, "
                f"{files[0].name} has {', '.join(first)}",
                "Give files of the same columns.",
            )
