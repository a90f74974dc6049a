"""What goes wrong is logged with its place, and without what the variables were."""

import pytest

from app.log import logger


def _sign_in(password: str) -> None:
    raise ValueError(f"{len(password)} characters")


def test_a_traceback_tells_where_and_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        _sign_in("-".join(["correct", "horse"]))
    except ValueError:
        logger("app").exception("page failed", page="team")
    said = capsys.readouterr().out
    assert "page failed" in said
    assert "_sign_in" in said
    assert "13 characters" in said
    assert "correct-horse" not in said
