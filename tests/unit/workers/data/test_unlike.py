"""Data of other shapes than the model's example: told where the model raises, refused nowhere."""

import re
from pathlib import Path

import pytest
import torch

from backend.errors import InvalidInput
from workers.data.errors import DataFailed
from workers.data.unlike import told_beside_example
from workers.definitions.errors import ModelRaised
from workers.definitions.loader import load

TWO = "(torch.zeros(n, 4), torch.ones(n, 2, dtype=torch.long))"
NAMED = "{'x': torch.zeros(n, 4), 'kinds': torch.ones(n)}"
FEWER = (torch.zeros(8, 3), torch.ones(8, 2))


@pytest.fixture
def definition(tmp_path: Path):
    def made(example: str):
        file = tmp_path / "net.py"
        file.write_text(
            "import torch\n\ndef model():\n    return torch.nn.Linear(4, 3)\n"
            f"\ndef example(n):\n    return {example}, torch.zeros(n)\n"
        )
        return load(file)

    return made


@pytest.mark.parametrize(
    ("example", "inputs", "said"),
    [
        (TWO, FEWER, "mat1.*data has (3), (2); one of the model's example has (4), (2)"),
        (
            TWO,
            torch.zeros(8, 3, 5),
            "mat1.*data has (3x5); one of the model's example has (4), (2)",
        ),
        (
            NAMED,
            {"x": torch.zeros(8), "kinds": torch.ones(8)},
            "x (a single one), kinds (a single one); one of the model's example has x (4)",
        ),
    ],
)
def test_both_shapes_are_told(definition, example: str, inputs, said: str) -> None:
    pattern = ".*".join(map(re.escape, said.split(".*")))
    with (
        pytest.raises(DataFailed, match=pattern) as caught,
        told_beside_example(definition(example), inputs),
    ):
        torch.zeros(8, 3) @ torch.zeros(4, 3)
    assert "Choose the columns" in caught.value.advice


def test_a_models_own_error_keeps_its_lines(definition) -> None:
    with (
        pytest.raises(ModelRaised, match=r"bad width\. A sample of the data") as caught,
        told_beside_example(definition(TWO), FEWER),
    ):
        raise ModelRaised("net.py, line 3: bad width", "Look.", "the lines")
    assert (caught.value.advice, caught.value.detail) == ("Look.", "the lines")


def test_errors_of_another_cause_stay_as_they_are(definition) -> None:
    like = (torch.zeros(8, 4), torch.ones(8, 2))
    with pytest.raises(RuntimeError, match=r"^other$"), told_beside_example(definition(TWO), like):
        raise RuntimeError("other")
    with (
        pytest.raises(InvalidInput, match=r"^cut$"),
        told_beside_example(definition(TWO), FEWER),
    ):
        raise InvalidInput("cut")


def test_other_shapes_that_the_model_takes_are_welcome(definition) -> None:
    with told_beside_example(definition(TWO), FEWER):
        pass
