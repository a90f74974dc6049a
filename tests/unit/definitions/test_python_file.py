"""Large texts are parsed apart, with an end to their time and memory."""

import pytest

from backend.definitions.definition import InvalidDefinition
from backend.definitions.python_file import SMALL, parameters_of, parsed

HEAD = "def model(width=3, name='x', rate: float = 1):\n    return None\n"


def test_a_large_text_has_the_same_answer_as_here() -> None:
    data = (HEAD + "# comment\n" * SMALL).encode()
    assert parameters_of("m.py", data) == parsed(data)
    with pytest.raises(InvalidDefinition, match="line 3: not Python") as caught:
        parameters_of("m.py", (HEAD + "x = )" + " " * SMALL).encode())
    assert "def model()" in caught.value.advice


def test_a_text_that_takes_too_long_is_refused() -> None:
    text = HEAD + "f'''\n" + "{a}\n" * 250_000 + "'''"
    with pytest.raises(InvalidDefinition, match="needs more than 5 s or 768 MiB"):
        parameters_of("m.py", text.encode())
