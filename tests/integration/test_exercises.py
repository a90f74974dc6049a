"""What a newcomer touches to add an action or a schedule: two patches, each tried on a copy.

The new action gives the first replica's buffers to the others after a step; the new schedule is
1F1B with a flush that uses it. Neither is shipped. What the first patch holds beside the action
and its row in the table of kinds is found by the type checker, or by a test, when it is left out.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
EXERCISES = TOP / "tests" / "exercises"
ACTION, SCHEDULE = EXERCISES / "new_action.patch", EXERCISES / "new_schedule.patch"
KINDS = ("backend/pipeline/actions.py", "backend/pipeline/kinds.py")
READERS = {"backend/prediction/durations.py", "workers/runtime/execution/training.py"}
OF_KINDS = "tests/unit/pipeline/test_kinds.py"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The product and its tests, without what was made from them."""
    waste = shutil.ignore_patterns("__pycache__", "screenshots", "*.webp")
    for folder in ("app", "backend", "workers", "migrations", "tests", "docs"):
        shutil.copytree(TOP / folder, tmp_path / folder, ignore=waste)
    for file in ("pyproject.toml", "stageflow.py"):
        shutil.copy(TOP / file, tmp_path)
    if (TOP / ".mypy_cache").exists():
        shutil.copytree(TOP / ".mypy_cache", tmp_path / ".mypy_cache")
    return tmp_path


def files(patch: Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)


def apply(copy: Path, patch: Path, *without: str, only: tuple[str, ...] = ()) -> None:
    """The patch, or those of its files that are named."""
    picks = [f"--exclude={name}" for name in without] + [f"--include={name}" for name in only]
    subprocess.run(["git", "apply", "-C1", *picks, str(patch)], cwd=copy, check=True)


def python(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """This Python on the copy's packages."""
    environment = {"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin", "HOME": str(copy)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def test_an_action_touches_eight_files_and_a_schedule_two() -> None:
    assert len(files(ACTION)) <= 8
    assert len(files(SCHEDULE)) <= 2


def test_the_exercise_trains(copy: Path) -> None:
    apply(copy, ACTION)
    apply(copy, SCHEDULE)
    done = python(copy, "-m", "tests.exercises.trained")
    assert done.stdout.endswith("trained\n"), done.stderr
    tested = python(copy, "-m", "pytest", "-q", OF_KINDS)
    assert tested.returncode == 0, tested.stdout


def test_the_type_checker_names_the_readers_that_forget_the_action(copy: Path) -> None:
    apply(copy, ACTION, only=KINDS)
    said = python(copy, "-m", "mypy", "--no-error-summary")
    assert {line.split(":")[0] for line in said.stdout.splitlines() if "error:" in line} == READERS


def test_a_test_names_what_the_type_checker_cannot(copy: Path) -> None:
    """The lowering that never adds it, the rule that never asks for it, the chart's colour."""
    apply(copy, ACTION, "backend/pipeline/rules/collectives.py", "app/charts/palette.py")
    apply(copy, SCHEDULE)
    said = python(copy, "-m", "pytest", "-q", OF_KINDS).stdout
    for test in ("the_verifier_misses_it_there", "a_word_a_colour_and_a_letter"):
        assert re.search(rf"FAILED .*{test}\[sync_buffers\]", said), said
    assert "2 failed" in said
    without = [name for name in files(ACTION) if name not in KINDS]
    shutil.rmtree(copy / "backend")
    shutil.copytree(TOP / "backend", copy / "backend")
    apply(copy, ACTION, *without)
    said = python(copy, "-m", "pytest", "-q", OF_KINDS).stdout
    assert re.search(r"FAILED .*the_verifier_misses_it_there\[sync_buffers\]", said), said
