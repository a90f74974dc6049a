"""A folder of pictures: a folder per class, in train and test where there is a part for that."""

from pathlib import Path

import torch

from backend.runs.request.data_forms import FORMS
from backend.units import count_text
from workers.data.errors import DataFailed
from workers.data.files import parted
from workers.data.pictures import SUFFIXES, Pictures, Size, size_of
from workers.data.request import DataRequest
from workers.data.split import DataSet, divided


def load(request: DataRequest) -> DataSet:
    """Classes are the names of the folders, in the order of the alphabet. Pictures get the
    size of the model's example, or else the first one's."""
    train, held_out = parted(request.path, SUFFIXES, FORMS["images"].path)
    classes = sorted({file.parent.name for file in train})
    if len(classes) < 2 or any(file.parent == request.path for file in train):
        raise DataFailed(
            f"{request.path} has pictures of {count_text(len(classes), 'folder')}: no classes to "
            "tell apart",
            f"Give {FORMS['images'].path}.",
        )
    size = request.size or size_of(train[0])
    part = _part(train, classes, size)
    if held_out:
        return DataSet(part, _part(held_out, classes, size), str(request.path))
    return divided(part, request.spec.held_out, str(request.path))


def _part(files: list[Path], classes: list[str], size: Size) -> Pictures:
    strange = sorted({file.parent.name for file in files} - set(classes))
    if strange:
        raise DataFailed(
            f"held-out pictures of {', '.join(strange)} have no class to train on",
            f"The classes are {', '.join(classes)}.",
        )
    labels = [classes.index(file.parent.name) for file in files]
    return Pictures(files, torch.tensor(labels), size)
