"""Which databases there can be, and that a faulty URL's password is told to nobody."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.settings import Settings
from backend.storage.database import open_engine

SECRET = "hush-hush"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgres//ada:{SECRET}@host/name", "not a database URL"),
        (f"postgresql://ada:{SECRET}@host:port/name", "not a database URL"),
        (f"postgresql+asyncpg://ada:{SECRET}@host/name", "not installed"),
        (f"postgresql+nothing://ada:{SECRET}@host/name", "not installed"),
        (f"mysql://ada:{SECRET}@host/name", "no support for mysql"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
    ],
)
def test_a_faulty_url_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        open_engine(Settings(database_url=url))
    assert "STAGEFLOW_DATABASE_URL" in str(caught.value)
    assert SECRET not in f"{caught.value} {caught.value.advice}"


@given(st.text(max_size=40).map(lambda text: f"postgresql:{text}"))
def test_any_text_is_a_url_or_refused(url: str) -> None:
    with suppress(InvalidInput):
        open_engine(Settings(database_url=url)).dispose()


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    engine = open_engine(Settings(database_url=f"sqlite:///{tmp_path}/deep/flow.db"))
    engine.connect().close()
    engine.dispose()
    assert (tmp_path / "deep" / "flow.db").exists()
