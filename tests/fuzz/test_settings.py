"""Any text in any variable, any bytes in any file of secrets: Settings, or an error of ours that
names the variable and tells no secret."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend import settings as module
from backend.errors import InvalidInput
from backend.setting_files import PREFIX, SECRETS
from backend.settings import Settings, load_settings

FIELDS = sorted(Settings.model_fields)
SECRET = [name for name in FIELDS if not Settings.model_fields[name].repr]
PROPERTIES = [name for name, value in vars(Settings).items() if isinstance(value, property)]
MARK = "hush-hush"

WORDS = (
    "~", "~nobody-at-all/x", "nan", "inf", "-1", "1e400", "9" * 5000, "0x10", "1_0", " 8501 ", "٣",
    "redis://:hush-hush@host:port/0", "redis://[::1", "http://[", "https://a:b:c", "off", "guest",
    "/" * 5000, "a" * 5000, ":~x:", "true", "null", "{}", "[]", "\n", "\udcff",
)  # fmt: skip
values = st.one_of(
    st.sampled_from(WORDS).map(os.fsencode),
    st.text(max_size=40).map(lambda text: text.encode(errors="replace")),
    st.binary(max_size=40),
    st.sampled_from(WORDS).map(lambda word: os.fsencode(MARK + word)),
)
fuzzed = settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of secrets that the environment names, and which is empty."""
    place = tmp_path / "secrets"
    place.mkdir()
    monkeypatch.setenv(SECRETS, str(place))
    return place


def read(field: str, *variables: str) -> None:
    """All of them, and all that is made of them, or an error of ours that is fit to be printed."""
    module._read.cache_clear()
    try:
        found = load_settings()
    except InvalidInput as error:
        told = f"{error} {error.advice}"
        assert any(variable in told for variable in variables)
        assert told.encode()
        assert len(told) < 1000
    else:
        told = repr(found)
        for name in PROPERTIES:
            assert getattr(found, name) is not None
    assert field not in SECRET or MARK not in told


@fuzzed
@given(st.sampled_from(FIELDS), values.filter(lambda value: b"\0" not in value))
def test_any_text_in_any_variable(folder: Path, field: str, value: bytes) -> None:
    variable = f"{PREFIX}{field.upper()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, os.fsdecode(value))
        read(field, variable)


@fuzzed
@given(st.sampled_from(FIELDS), values)
def test_any_bytes_in_any_file_of_secrets(folder: Path, field: str, value: bytes) -> None:
    variable = f"{PREFIX}{field.upper()}"
    file = folder / variable.lower()
    file.write_bytes(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(variable, raising=False)
        read(field, variable, SECRETS)
    file.unlink()


@fuzzed
@given(values.filter(lambda value: b"\0" not in value))
def test_any_text_as_the_folder_of_secrets(home: Path, value: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SECRETS, os.fsdecode(value))
        read(SECRETS, SECRETS)


def test_a_file_that_may_not_be_read_is_named(folder: Path) -> None:
    (folder / "stageflow_token").write_bytes(b"\xff" + MARK.encode())
    with pytest.raises(InvalidInput, match="stageflow_token cannot be read: no UTF-8") as caught:
        load_settings()
    assert MARK not in str(caught.value)
