"""What is refused without being run, and with which line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.definitions.check import check
from backend.definitions.definition import InvalidDefinition
from backend.definitions.forms import MAX_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "def model(): ...",
        "def model(width=3, *, depth=4): ...",
        "def model(*args, **kwargs): ...",
        "import torch\nraise SystemExit\ndef model(): ...",
        "# coding: latin-1\ndef model(): return '\xe4'",
        "x = '\\d'\ndef model(): ...",
    ],
)
def test_a_file_with_a_model_is_taken_and_not_run(text: str):
    check("m.py", text.encode("latin-1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "m.py is empty"),
        (b" \n\t\n", "m.py is empty"),
        (b"x = 1\n\ndef model(:\n", "line 3: not Python"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not Python"),
        (b"def model():\n    return '\xff'\n", "not Python"),
        (b"(" * 5000 + b")" * 5000, "not Python"),
        (b"def example(batch): ...\n", "no `def model"),
        (b"class A:\n    def model(self): ...\n", "no `def model"),
        (b"model = 3\n", "no `def model"),
        (b"\nasync def model(): ...\n", "line 2: model is async"),
        (b"def model(width, *, depth): ...\n", r"line 1: model\(\) needs width, depth"),
        (b"#" * (MAX_BYTES["python"] + 1), "m.py is larger than 1.00 MiB"),
    ],
)
def test_a_faulty_file_is_refused_with_its_reason(text: bytes, message: str):
    with pytest.raises(InvalidDefinition, match=message) as caught:
        check("m.py", text)
    assert caught.value.advice


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes):
    with suppress(InvalidDefinition):
        check("m.py", data)
        assert b"model" in data
