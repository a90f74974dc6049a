"""Programs of ours in processes forked from one that has imported them already.

Each is a process of its own with its own environment, folder and output, as one that a shell
starts, and begins in milliseconds: what it imports takes a second and more.
"""

import atexit
import multiprocessing
import os
import sys
from importlib import import_module
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import app.cli

COMMANDS = dict.fromkeys(
    [*app.cli.COMMANDS.values(), *(module for module, _ in app.cli.GROUPS.values())]
)
PROGRAMS = ("app.cli", "workers.runtime.main", "workers.profiler.main", *COMMANDS)
_CONTEXT = multiprocessing.get_context("forkserver")
LATE = ("torch._dynamo", "torch._export.non_strict_utils", "torch._functorch.partitioners")
"""What torch imports once a rank trains, and once a model is exported: a second of each process."""
_CONTEXT.set_forkserver_preload([*PROGRAMS, "torch", *LATE])


class Forked:
    """A program that runs: the `main` of a module, with what it prints in two files."""

    def __init__(self, module: str, *arguments: str, env: dict[str, str]) -> None:
        self._folder = TemporaryDirectory()
        place = Path(self._folder.name)
        self.out, self.err = place / "out", place / "err"
        files = (str(self.out), str(self.err))
        _begin()
        self._process: Any = _CONTEXT.Process(
            target=_run, args=(module, arguments, env, os.getcwd(), files)
        )
        self._process.start()
        self.pid: int = self._process.pid

    def wait(self, timeout: float) -> int:
        """Its exit code; killed, and `TimeoutError`, where it takes more than these seconds."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
            raise TimeoutError(f"{timeout} s: {self.out.read_text()}{self.err.read_text()}")
        return self._process.exitcode


def _begin() -> None:
    """Start the process that is forked, with no variable of the test that happens to be first: who
    looks for processes of a home would find it."""
    ours = {
        name: os.environ.pop(name) for name in list(os.environ) if name.startswith("STAGEFLOW_")
    }
    ensure_running()
    os.environ.update(ours)


def _run(
    module: str,
    arguments: tuple[str, ...],
    env: dict[str, str],
    folder: str,
    files: tuple[str, str],
) -> NoReturn:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), number)
    program = import_module(module)
    sys.argv = [str(program.__file__), *arguments]
    code: object = 1
    try:
        code = program.main()
    except SystemExit as ended:
        code = ended.code
    finally:
        atexit._run_exitfuncs()
    sys.exit(code)
