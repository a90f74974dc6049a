"""JSON lines: texts, pairs of them and conversations, or numbers as a table has them."""

from pathlib import Path

import pyarrow as pa

from backend.errors import first_line
from backend.runs.request.data_forms import FORMS
from workers.data.errors import DataFailed
from workers.data.files import parted
from workers.data.forms import tables
from workers.data.request import DataRequest
from workers.data.split import DataSet
from workers.data.texts.records import read_lines
from workers.data.texts.text_data import TextData

SUFFIXES = (".jsonl", ".ndjson", ".json")


def load(request: DataRequest) -> DataSet:
    """With a tokenizer the fields are texts, else they are the columns of a table."""
    train, held_out = parted(request.path, SUFFIXES, FORMS["jsonl"].path)
    if not request.tokenizer:
        return tables.joined(request, train, held_out, _table)
    name = train[0].name if len(train) == 1 else str(request.path)
    rest = read_lines(held_out) if held_out else []
    return TextData(request, name).data_set(read_lines(train), rest)


def _table(file: Path) -> pa.Table:
    rows = read_lines([file])
    try:
        return pa.Table.from_pylist([dict(row.fields) for row in rows])
    except pa.ArrowException as fault:
        raise DataFailed(
            f"{file}: its lines make no table: {first_line(fault)}",
            "Give every field values of one kind, or a tokenizer where they are texts.",
        ) from None
