"""What every suite shares: one thread to compute with, a state directory of its own per test."""

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.slurm import Slurm
from tests.slurm import slurm as started_slurm

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as ranks have: processes of tests share the cores
settings.register_profile("stageflow", deadline=None)  # a machine's load is not a fault
settings.load_profile("stageflow")
gc.disable()  # until all is imported
SUITES = ("e2e", "integration/hosts", "integration/agent", "integration", "fuzz", "cli", "app")
"""Folders of tests, those first whose tests cost most; any other's cost less."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What costs most comes last: where time is short, few tests are left out."""
    items.sort(key=lambda item: [f"/tests/{suite}/" in str(item.path) for suite in SUITES])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """`make test MINUTES=70` begins no test after so long, and the summary says how many."""
    if time.time() > float(os.environ.get("TESTS_UNTIL") or "inf"):
        pytest.skip("not run: the minutes of this run were over")


def pytest_collection_finish() -> None:
    """What tests are made of stays: the garbage collector need not look through it each time."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty STAGEFLOW_HOME, with no other STAGEFLOW variable set."""
    for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    monkeypatch.setenv("STAGEFLOW_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A real Slurm for all tests of this process."""
    with started_slurm() as slurm:
        yield slurm
