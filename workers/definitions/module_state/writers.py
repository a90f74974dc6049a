"""Where in a person's code a forward changes what its model keeps, or draws random numbers."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType

from torch import nn

from backend.definitions.syntax import syntax_tree
from workers.definitions.module_state.module_state import Difference

_WRITES = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def written_at(model: nn.Module, differences: Sequence[Difference]) -> tuple[str, str]:
    """The place of the first change that is found ("net.py, line 11") and its line; ("", "") where
    none is found, as for what a closure or a library of torch changes."""
    for each in differences:
        for function in _functions(model, each):
            if found := _place(function, each):
                return found
    return "", ""


def _functions(model: nn.Module, difference: Difference) -> Iterator[FunctionType]:
    """The methods that run in forwards: of the module that keeps it, else of all."""
    path = difference.module
    modules = model.modules() if path is None else [model.get_submodule(path)]
    for kind in dict.fromkeys(kind for module in modules for kind in type(module).__mro__):
        if kind.__module__.partition(".")[0] not in ("torch", "builtins"):
            for name, each in vars(kind).items():
                if isinstance(each, FunctionType) and name != "__init__":
                    yield each


def _place(function: FunctionType, difference: Difference) -> tuple[str, str] | None:
    try:
        lines, first = inspect.getsourcelines(function)
        tree = syntax_tree(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):  # made while it ran, or a part of a longer expression
        return None
    for node in ast.walk(tree):
        if _draws(node, difference.path) if difference.is_random else _writes(node, difference):
            line = getattr(node, "lineno", 1) - 1
            file = Path(function.__code__.co_filename).name
            return f"{file}, line {first + line}", lines[line].strip()
    return None


def _writes(node: ast.AST, difference: Difference) -> bool:
    """Whether it assigns to the attribute or a part of it, or calls a method of it."""
    attribute = re.split(r"[.\[]", _within(difference))[0]
    if isinstance(node, _WRITES):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(_is(each, attribute) for target in targets for each in ast.walk(target))
    return isinstance(node, ast.Call) and any(
        _is(each, attribute) for each in ast.walk(node.func) if each is not node.func
    )


def _within(difference: Difference) -> str:
    """The path in the module that keeps it."""
    return difference.path.removeprefix(f"{difference.module}.")


def _is(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute


def _draws(node: ast.AST, generator: str) -> bool:
    """Whether it calls a function of the module that people know the generator by."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func).replace("np.", "numpy.", 1)
    return called.startswith(f"{generator}.")
