"""docker/slurm.env and local.env: settings that there are, no secrets, a command that is one."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from app.commands.pools import app
from backend.setting_files import PREFIX, SECRETS
from backend.settings import Settings

FILES = [Path(__file__).parents[2] / "docker" / f"{kind}.env" for kind in ("slurm", "local")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_settings_file_to_copy_is_right(file: Path) -> None:
    text = file.read_text()
    given = dict(re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE))
    fields = {name.removeprefix(PREFIX).lower(): given[name] for name in given if name != SECRETS}
    assert len(fields) > 2
    for name in fields:
        assert Settings.model_fields[name].repr  # others lie in files
    assert fields.keys() <= Settings(**fields).model_fields_set
    (line,) = re.findall(r"^# +stageflow pool (.+)$", text, re.MULTILINE)
    kind, *options = shlex.split(line)
    assert kind == file.stem
    command = typer.main.get_command(app).commands[kind]
    assert command.make_context(kind, options).params["name"]
