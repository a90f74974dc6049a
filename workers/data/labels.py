"""Labels that the model can tell apart, looked at before anything is trained."""

from workers.data.errors import DataFailed
from workers.data.ragged import PAD_TARGET
from workers.data.split import DataSet, Split
from workers.data.values import whole
from workers.definitions.definition import LoadedDefinition, cross_entropy


def check_labels(data: DataSet, definition: LoadedDefinition, classes: int | None) -> None:
    """Raise `DataFailed` where a label is none of the model's `classes` (None: its output is no
    tensor). Only where the loss is the usual cross entropy, and the labels are known without
    loading a sample."""
    if definition.loss is not cross_entropy or classes is None:
        return
    for part in (data.train, data.held_out):
        if part is not None:
            _check(part, classes, data.name)


def _check(part: Split, classes: int, name: str) -> None:
    labels = part.labels
    if labels is None or not whole(labels):
        return
    wrong = ((labels < 0) & (labels != PAD_TARGET)) | (labels >= classes)
    if bool(wrong.any()):
        first = wrong.nonzero()[0]
        raise DataFailed(
            f"{name}: {int(wrong.sum())} of {labels.numel()} labels are not among the model's "
            f"{classes} classes (0 to {classes - 1}): the first is {int(labels[tuple(first)])}, "
            f"of sample {int(first[0])}",
            f"Correct the labels, or give the model {int(labels.max()) + 1} classes.",
        )
