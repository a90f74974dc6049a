"""The parameters of a definition, read from its file without running it."""

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from backend.definitions.definition import InvalidDefinition
from backend.errors import InvalidInput

Value = bool | int | float | str
Kind = Literal["bool", "int", "float", "str"]
Values = Mapping[str, Value]
TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
FUNCTIONS = ("model", "example", "data")
"""The functions of a Python file whose arguments with defaults are parameters."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A name with the value that it has where nobody gives one; `choices` () = any value."""

    name: str
    kind: Kind
    default: Value
    choices: tuple[str, ...] = ()


def of_python(tree: ast.Module) -> tuple[Parameter, ...]:
    """The arguments of `model` and its neighbours whose defaults are numbers, text or truth
    values, each once."""
    found: dict[str, Parameter] = {}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in FUNCTIONS:
            for parameter in _parameters(function.args):
                found.setdefault(parameter.name, parameter)
    return tuple(found.values())


def checked(
    parameters: tuple[Parameter, ...], values: Mapping[str, Value], label: str
) -> dict[str, Value]:
    """`values` with whole numbers as floats where floats are meant; raises `InvalidDefinition`
    on an unknown name or a value of another kind."""
    known = {parameter.name: parameter for parameter in parameters}
    result: dict[str, Value] = {}
    for name, value in values.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise InvalidDefinition(
                f"{label} has no parameter {name!r}", f"Its parameters: {names}."
            )
        result[name] = _of_kind(known[name], value)
    return result


def assignments(texts: Iterable[str], option: str = "--set") -> dict[str, str]:
    """NAME=VALUE by name, as `option` gives them. Raises `InvalidInput` on anything else."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput(
                f"{option} {text} is not NAME=VALUE", f"For example: {option} width=128"
            )
        found[name.strip()] = value.strip()
    return found


def parsed(parameters: tuple[Parameter, ...], texts: Mapping[str, str]) -> dict[str, Value]:
    """Values from a command line; what is no number, or unknown, stays text for `checked`."""
    kinds = {parameter.name: parameter.kind for parameter in parameters}
    return {name: _parsed(kinds.get(name, "str"), text) for name, text in texts.items()}


def with_defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """Each argument with its default, None where it has none."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    pairs = [*zip(positional, [*missing, *arguments.defaults], strict=True)]
    return [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    for argument, default in with_defaults(arguments):
        value = None if default is None else _constant(default)
        if value is not None:
            kind = type(value).__name__
            wanted = argument.annotation
            if type(value) is int and isinstance(wanted, ast.Name) and wanted.id == "float":
                kind, value = "float", _real(value)
            yield Parameter(argument.arg, cast(Kind, kind), value)


def _constant(node: ast.expr) -> Value | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _real(value: int) -> float:
    """Infinite where it is larger than any."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _of_kind(parameter: Parameter, value: Value) -> Value:
    if parameter.kind == "float" and type(value) is int:
        value = _real(value)
    if type(value).__name__ != parameter.kind:
        raise InvalidDefinition(
            f"parameter {parameter.name} is {value!r}, which is not of the kind {parameter.kind}",
            f"Its default is {parameter.default!r}.",
        )
    if parameter.choices and value not in parameter.choices:
        raise InvalidDefinition(
            f"parameter {parameter.name} is {value!r}",
            f"Choose one of {', '.join(filter(None, parameter.choices))}.",
        )
    return value


def _parsed(kind: Kind, text: str) -> Value:
    try:
        match kind:
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "bool":
                return TRUTH[text.lower()]
            case "str":
                return text
    except (ValueError, KeyError):
        return text
