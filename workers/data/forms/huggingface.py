"""A Hugging Face data set: what `datasets` saved to disk, or the files of the hub."""

from pathlib import Path

import orjson
import pyarrow as pa

from backend.runs.request.data_forms import FORMS
from workers.data.errors import DataFailed
from workers.data.files import HELD_OUT, there
from workers.data.forms import tables
from workers.data.request import DataRequest
from workers.data.split import DataSet

STATE = "state.json"
SPLITS = "dataset_dict.json"
OF_THE_HUB = {".parquet": tables.parquet, ".csv": tables.csv}


def load(request: DataRequest) -> DataSet:
    """Raises `DataFailed` where the folder is no such data set."""
    top = there(request.path, FORMS["huggingface"].path)
    if (top / SPLITS).is_file() or (top / STATE).is_file():
        train, held_out = _splits(top)
        return tables.joined(request, _files(train), _files(held_out), _read_stream)
    for suffix, read in OF_THE_HUB.items():
        if any(top.rglob(f"*{suffix}")):
            return read(request)
    raise DataFailed(f"{top} is not a Hugging Face data set", f"Give {FORMS['huggingface'].path}.")


def _splits(top: Path) -> tuple[Path, Path | None]:
    """The folders of the part to train on and of the one held out."""
    if (top / STATE).is_file():
        return top, None
    names = orjson.loads((top / SPLITS).read_bytes())["splits"]
    train = next((name for name in names if name.startswith("train")), names[0])
    others = [name for name in names if name != train and HELD_OUT.match(name)]
    return top / train, top / others[0] if others else None


def _files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        state = orjson.loads((folder / STATE).read_bytes())
        return [folder / entry["filename"] for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError) as fault:
        raise DataFailed(
            f"{folder} is not part of a saved data set: {fault}", "Save it with save_to_disk."
        ) from None


def _read_stream(file: Path) -> pa.Table:
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_stream(source).read_all()
