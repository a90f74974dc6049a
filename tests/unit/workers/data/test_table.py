"""Columns of any kind as inputs and targets, and what is refused of them."""

import io
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

from backend.runs.request.spec import DataSpec
from workers.data.errors import DataFailed
from workers.data.pictures import Pictures
from workers.data.ragged import Ragged
from workers.data.split import Split
from workers.data.table import part_of

ALL = torch.arange(3)


def part(columns: dict, **more) -> Split:
    return part_of(pa.table(columns), DataSpec(**more), None, "mine.csv")


def png(grey: int) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(np.full((2, 2), grey, np.uint8)).save(sink, "png")
    return sink.getvalue()


def test_numbers_lie_side_by_side_and_the_last_column_is_the_target() -> None:
    found = part({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "kind": ["oak", "ash", "oak"]})
    assert found.inputs(ALL).tolist() == [[1.0, 0.5], [2.0, 1.5], [3.0, 2.5]]
    assert found.targets(ALL).tolist() == [1, 0, 1]


def test_columns_are_chosen_and_a_float_target_has_a_column() -> None:
    found = part(
        {"y": [0.1, 0.2, 0.3], "x": [1, 2, 3], "z": [7, 8, 9]}, inputs=("x",), targets=("y",)
    )
    assert found.inputs(ALL).tolist() == [[1.0], [2.0], [3.0]]
    assert found.targets(ALL).shape == (3, 1)


def test_lists_are_stacked_or_padded() -> None:
    even = part({"x": [[1, 2], [3, 4], [5, 6]], "y": [0, 1, 0]})
    assert even.inputs(ALL).tolist() == [[1, 2], [3, 4], [5, 6]]
    ragged = part({"x": [[1], [2, 3], [4, 5, 6]], "y": [[9], [8, 7], [6, 5, 4]]})
    assert isinstance(ragged, Ragged)
    assert ragged.lengths.tolist() == [1, 2, 3]
    assert ragged.targets(ALL, 3)[0].tolist() == [9, -100, -100]


def test_pictures_are_decoded_when_they_are_asked_for() -> None:
    rows = [{"bytes": png(grey), "path": None} for grey in (0, 51, 255)]
    found = part({"image": rows, "label": [0, 1, 2]})
    assert isinstance(found, Pictures)
    assert not found.is_at_hand
    assert found.inputs(ALL)[:, 0, 0, 0].tolist() == pytest.approx([0.0, 0.2, 1.0])


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"x": [1.0, None, 3.0], "y": [0, 1, 2]}, "'x' has 1 empty cell of 3"),
        ({"x": [1.0, float("nan"), 3.0], "y": [0, 1, 2]}, "1 of 3 samples hold NaN .* sample 1"),
        ({"x": [date(2020, 1, 1)] * 3, "y": [0, 1, 2]}, "'x' holds date32.*, not numbers"),
        ({"y": [0, 1, 2]}, "has 1 columns: too few"),
        ({"x": [], "y": []}, "has no rows"),
        ({"x": [[1], [2, 3], [4]], "z": [1, 2, 3], "y": [0, 1, 2]}, "do not go together"),
        ({"x": [b"no", b"picture", b"!"], "y": [0, 1, 2]}, "cannot be decoded"),
    ],
)
def test_what_cannot_be_learned_from_is_told_with_its_column(columns: dict, reason: str) -> None:
    with pytest.raises(DataFailed, match=reason) as raised:
        part(columns)
    assert raised.value.advice
