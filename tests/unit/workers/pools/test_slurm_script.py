"""What a job is told, and the script that starts its agents: run by bash as it is."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.runs.pools.job import JobOrder
from backend.settings import Settings
from workers.pools.slurm.script import SRUN, checked, script

PLAIN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def order(*words: str) -> JobOrder:
    return JobOrder("a-1", 1, 1, 3, words)


def told(text: str, folder: Path) -> list[str]:
    """The arguments of srun and a variable, as bash hands them over."""
    fake = folder / "srun"
    fake.write_text('#!/bin/bash\nprintf "%s\\0" "$@" "$STAGEFLOW_HOME" "$STAGEFLOW_DEVICES"\n')
    fake.chmod(0o700)
    done = subprocess.run(["bash", "-s"], input=text.encode(), capture_output=True, env={})
    return done.stdout.decode().split("\0")[:-1]


@given(st.lists(PLAIN, min_size=1, max_size=4), PLAIN)
def test_words_reach_the_agents_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], home: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = script(order(*words), {"STAGEFLOW_HOME": home}, str(folder))
    assert told(text, folder) == [*SRUN.split()[1:], *words, home, "3"]


def test_its_first_line_after_the_shell_ends_slurms_own_options() -> None:
    """Slurm reads lines that begin with #SBATCH up to the first command."""
    lines = script(order("a", "\n#SBATCH --nodes=99\n"), {}, "/opt/bin").splitlines()
    assert lines[0] == "#!/bin/bash"
    assert lines[1].startswith("export ")


@pytest.mark.parametrize(
    "name", [name for name, field in Settings.model_fields.items() if not field.repr]
)
def test_a_field_that_may_hold_a_secret_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="secret"):
        checked({f"STAGEFLOW_{name.upper()}": "x"})


def test_so_it_is_in_other_letters() -> None:
    with pytest.raises(InvalidInput, match="secret"):
        checked({"stageflow_database_url": "x"})


@pytest.mark.parametrize("name", ["", "A B", "1A", "A=B", "A\n"])
def test_what_is_no_name_of_a_variable_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="not the name"):
        checked({name: "x"})


def test_the_folder_of_secrets_must_be_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    told = {"STAGEFLOW_SECRETS": str(folder)}
    with pytest.raises(InvalidInput, match="only its owner"):
        checked(told)
    folder.mkdir(mode=0o750)
    with pytest.raises(InvalidInput, match="only its owner") as fault:
        checked(told)
    os.system(fault.value.advice)
    assert checked(told) == told
