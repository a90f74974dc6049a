"""What several commands have in common: options, files that they write, groups of options."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from app.terminal import err

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Detach = Annotated[bool, typer.Option("--detach", help="Queue it and return.")]
AloneOption = Annotated[
    bool, typer.Option("--alone", help="No other run is on its nodes meanwhile.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.")]
STDOUT = Path("-")


def write(output: Path, data: bytes) -> None:
    """Write `data` to the file, or to standard output for "-"."""
    if output == STDOUT:
        sys.stdout.buffer.write(data)
        return
    output.write_bytes(data)
    err.print(f"wrote {output}")


def taking(*groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`command(first, second, ...)` with the options of each group in the place of what the group
    makes of them: options are declared once, where they are read."""
    shared = [list(signature(group, eval_str=True).parameters.values()) for group in groups]

    def with_groups(command: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(command, eval_str=True).parameters.values())[len(groups) :]

        @wraps(command)
        def with_options(**values: Any) -> None:
            read = [
                group(**{option.name: values.pop(option.name) for option in options})
                for group, options in zip(groups, shared, strict=True)
            ]
            command(*read, **values)

        found = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*chain(*shared), *own)]
        found.sort(key=lambda each: each.default is not Parameter.empty)  # required ones first
        with_options.__signature__ = Signature(found)  # type: ignore[attr-defined] # typer asks it
        with_options.__annotations__ = {each.name: each.annotation for each in found}
        return with_options

    return with_groups
