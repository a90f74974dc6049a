"""Tables in files: Parquet and CSV."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch

from backend.runs.data_forms import FORMS
from workers.data.asked import Asked
from workers.data.errors import DataFailed
from workers.data.files import parted
from workers.data.part import Chosen, DataSet, divided
from workers.data.table import part_of

Read = Callable[[Path], pa.Table]


def parquet(asked: Asked) -> DataSet:
    """All .parquet files; those named train and test are the two parts."""
    return _load(asked, ".parquet", pyarrow.parquet.read_table)


def csv(asked: Asked) -> DataSet:
    """All .csv files, which begin with a heading."""
    return _load(asked, ".csv", pyarrow.csv.read_csv)


def joined(asked: Asked, train: list[Path], held_out: list[Path], read: Read) -> DataSet:
    """One part per list of files, made of one table, so that words mean the same labels in
    both. Raises `DataFailed` where a file cannot be read or has other columns."""
    name = train[0].name if len(train) == 1 else str(asked.path)
    tables = [_read(file, read) for file in (*train, *held_out)]
    _check_alike(tables, [*train, *held_out])
    part = part_of(
        pa.concat_tables(tables, promote_options="default"), asked.spec, asked.size, name
    )
    count = sum(len(table) for table in tables[: len(train)])
    if not held_out:
        return divided(part, asked.spec.held_out, name)
    numbers = torch.arange(len(part))
    return DataSet(Chosen(part, numbers[:count]), Chosen(part, numbers[count:]), name)


def _load(asked: Asked, suffix: str, read: Read) -> DataSet:
    train, held_out = parted(asked.path, (suffix,), FORMS[suffix[1:]].path)
    return joined(asked, train, held_out, read)


def _read(file: Path, read: Read) -> pa.Table:
    try:
        return read(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        line = str(fault).splitlines()[0]
        raise DataFailed(f"{file.name} cannot be read: {line}", "Write it again.") from None


def _check_alike(tables: list[pa.Table], files: list[Path]) -> None:
    first = tables[0].column_names
    for table, file in zip(tables[1:], files[1:], strict=True):
        if table.column_names != first:
            raise DataFailed(
                f"{file.name} has columns {', '.join(table.column_names)}, "
                f"{files[0].name} has {', '.join(first)}",
                "Give files of the same columns.",
            )
