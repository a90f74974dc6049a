"""The `stageflow` command: everything the pages do, for a terminal and for scripts."""

import os
import sys
from importlib import import_module
from typing import Any

import typer

from app.terminal import print_error
from backend.ending import end_quickly, seldom_collect
from backend.errors import StageflowError

GROUPS = {
    "db": ("app.commands.backup", "app"),
    "user": ("app.commands.user", "app"),
    "project": ("app.commands.project", "app"),
    "program": ("app.commands.program", "app"),
    "trace": ("app.commands.traces", "app"),
    "pool": ("app.commands.pools", "app"),
    "tracker": ("app.commands.trackers", "app"),
    "comment": ("app.commands.comments", "app"),
    "sweep": ("app.commands.sweeps", "app"),
    "views": ("app.commands.views", "views"),
    "clusters": ("app.commands.clusters", "clusters"),
    "plans": ("app.commands.kept", "plans"),
    "profiles": ("app.commands.kept", "profiles"),
}
"""Module and Typer application of each group of commands."""
COMMANDS = {
    "up": "app.commands.serve",
    "demo": "app.commands.demo",
    "worker": "app.commands.serve",
    "doctor": "app.commands.doctor",
    "models": "app.commands.models",
    "profile": "app.commands.jobs",
    "plan": "app.commands.plans",
    "compare": "app.commands.plans",
    "simulate": "app.commands.simulate",
    "run": "app.commands.jobs",
    "runs": "app.commands.history",
    "show": "app.commands.history",
    "logs": "app.commands.history",
    "cancel": "app.commands.history",
    "stacks": "app.commands.stacks",
    "resume": "app.commands.jobs",
    "attempts": "app.commands.history",
    "delete": "app.commands.history",
    "export": "app.commands.history",
    "audit": "app.commands.audit",
    "backup": "app.commands.backup",
    "restore": "app.commands.backup",
    "move": "app.commands.backup",
}
"""The module of each command, whose function has its name."""


ON_ONE_THREAD = {"plan", "compare"}
"""Commands that compute here, with small matrices: threads of numpy's BLAS would spin beside them.
Ranks and pages, which other commands start, decide for themselves."""


def application(only: str = "") -> typer.Typer:
    """The commands. Of `only` one or of one group: what the others need is not imported, which
    takes a second."""
    found = typer.Typer(
        help="Plan, run and compare pipeline-parallel training.\n\nFirst time? Try: stageflow demo",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name, (module, member) in GROUPS.items():
        if only in ("", name):
            found.add_typer(getattr(import_module(module), member), name=name)
    for name, module in COMMANDS.items():
        if only in ("", name):
            found.command()(getattr(import_module(module), name))
    if only:
        found.callback()(_nothing)  # one command alone would go without its name
    return found


def _nothing() -> None: ...


def __getattr__(name: str) -> Any:
    """`app`: all commands, made for who asks for it."""
    if name != "app":
        raise AttributeError(name)
    return application()


def main() -> None:
    """Run the command line; an error that a person can mend ends it with code 1."""
    end_quickly()
    name = _first(sys.argv[1:])
    if name in ON_ONE_THREAD:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before anything imports numpy
        seldom_collect()
    try:
        application(name)()
    except StageflowError as error:
        print_error(error)
        sys.exit(1)
    except OSError as fault:
        place = f"{fault.filename!s:.200}: " if fault.filename else ""
        advice = "Check the path." if place else ""
        print_error(StageflowError(f"{place}{fault.strerror or fault}", advice))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _first(words: list[str]) -> str:
    """The command or group that is called, where it is the first word."""
    return words[0] if words and words[0] in {*GROUPS, *COMMANDS} else ""


if __name__ == "__main__":
    main()
