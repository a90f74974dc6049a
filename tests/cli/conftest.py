"""The `stageflow` command as a person runs it: a process of its own."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.forked import Forked


@dataclass(frozen=True)
class Said:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture
def stageflow(home: Path) -> Command:
    """Run `stageflow ARGS` on the test's own home; `env` adds variables."""

    def run(*args: str, env: dict[str, str] | None = None, timeout: float = 240) -> Said:
        variables = dict(os.environ) | {"STAGEFLOW_HOME": str(home)} | (env or {})
        command = Forked("app.cli", *args, env=variables)
        return Said(command.wait(timeout), command.out.read_text(), command.err.read_text())

    return run


@pytest.fixture
def database(stageflow: Command) -> None:
    """The home has a database of today's schema."""
    assert stageflow("db", "upgrade").code == 0


def assert_nothing_runs(home: Path) -> None:
    """The command leaves no Redis, agent, rank or dashboard of its home behind."""
    mine = f"STAGEFLOW_HOME={home}"
    left = []
    for process in psutil.process_iter():
        try:
            variables = [f"{k}={v}" for k, v in process.environ().items()]
            arguments = " ".join(process.cmdline())
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if process.pid != os.getpid() and (mine in variables or str(home) in arguments):
            left.append(arguments)
    assert left == []
