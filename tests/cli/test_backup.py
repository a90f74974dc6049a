"""`stageflow backup`, `restore` and `move` as a person runs them."""

from pathlib import Path

import pytest

from backend.bootstrap import connect
from backend.settings import Settings
from tests.cli.conftest import Command


@pytest.mark.usefixtures("database")
def test_there_and_back(stageflow: Command, tmp_path: Path) -> None:
    here = connect()
    here.definitions.add("tiny.py", b"def model(): ...\n")
    here.close()
    file = tmp_path / "monday.zip"
    said = stageflow("backup", str(file))
    assert said.code == 0, said.err
    assert "schema" in said.out
    said = stageflow("restore", str(file), env={"STAGEFLOW_HOME": str(tmp_path / "other")})
    assert said.code == 0, said.err
    assert "Restored" in said.out
    to = f"sqlite:///{tmp_path}/moved.db"
    said = stageflow("move", "--to", to)
    assert said.code == 0, said.err
    assert "every row is there" in said.out
    for settings in (Settings(home=tmp_path / "other"), Settings(database_url=to)):
        there = connect(settings)
        assert [kept.name for kept in there.definitions.list()] == ["tiny"]
        there.close()
    again = stageflow("backup", str(file))
    assert (again.code, "is there already" in again.err) == (1, True)
