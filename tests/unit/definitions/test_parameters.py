"""Parameters are read from a file's text, and values are held against them."""

import ast

import pytest

from backend.definitions.definition import InvalidDefinition
from backend.definitions.parameters import Parameter, checked, of_python, parsed

TEXT = """
def model(width: int = 64, rate: float = 1, name: str = "a", deep: bool = True, *, k=2.5): ...
def example(batch, image=32, width=8, other=None, sizes=(1, 2)): ...
def loss(output, target, scale=3.0): ...
def helper(depth=4): ...
"""
FOUND = of_python(ast.parse(TEXT))


def test_arguments_with_plain_defaults_of_the_factory_and_its_neighbours() -> None:
    assert (
        Parameter("width", "int", 64),
        Parameter("rate", "float", 1.0),
        Parameter("name", "str", "a"),
        Parameter("deep", "bool", True),
        Parameter("k", "float", 2.5),
        Parameter("image", "int", 32),
    ) == FOUND


def test_negative_numbers_are_plain() -> None:
    assert of_python(ast.parse("def model(a=-1, b=-0.5, c=f()): ...")) == (
        Parameter("a", "int", -1),
        Parameter("b", "float", -0.5),
    )


def test_values_fit_or_are_refused_by_name() -> None:
    assert checked(FOUND, {"width": 8, "rate": 2}, "net@1") == {"width": 8, "rate": 2.0}
    with pytest.raises(InvalidDefinition, match="net@1 has no parameter 'depth'") as raised:
        checked(FOUND, {"depth": 8}, "net@1")
    assert "width, rate" in raised.value.advice


@pytest.mark.parametrize(
    ("name", "value"), [("width", 1.5), ("width", True), ("deep", 1), ("name", 3), ("k", "x")]
)
def test_values_of_another_kind(name: str, value) -> None:
    with pytest.raises(InvalidDefinition, match=f"parameter {name} is"):
        checked(FOUND, {name: value}, "net@1")


def test_choices_are_kept_to() -> None:
    task = (Parameter("task", "str", "", ("", "causal-lm", "masked-lm")),)
    assert checked(task, {"task": "masked-lm"}, "net") == {"task": "masked-lm"}
    with pytest.raises(InvalidDefinition, match="task is 'cooking'") as raised:
        checked(task, {"task": "cooking"}, "net")
    assert raised.value.advice == "Choose one of causal-lm, masked-lm."


def test_texts_of_a_command_line() -> None:
    texts = {"width": "8", "rate": "2", "deep": "no", "name": "3", "depth": "4", "k": "many"}
    assert parsed(FOUND, texts) == {
        "width": 8,
        "rate": 2.0,
        "deep": False,
        "name": "3",
        "depth": "4",
        "k": "many",
    }
