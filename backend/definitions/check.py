"""What can be said about a definition file without running it."""

import ast
import warnings

from backend.definitions.definition import InvalidDefinition
from backend.definitions.forms import (
    MAX_BYTES,
    Description,
    describe_config,
    describe_program,
    describe_weights,
    form_of,
)
from backend.definitions.parameters import of_python, with_defaults

CONTRACT = (
    "A definition is a Python file with `def model()` that returns a torch nn.Module. Beside it: "
    '`def example(batch)` that returns (inputs, targets), or `DATA = "digits"`; '
    "if wanted, `def loss(output, target)` and `def data()`."
)


def check(filename: str, data: bytes) -> Description:
    """What the file is; raises `InvalidDefinition` where it can be no definition.

    The text is parsed, never run.
    """
    form = form_of(filename)
    if not data.strip():
        raise InvalidDefinition(f"{filename} is empty", CONTRACT)
    if len(data) > MAX_BYTES[form]:
        raise InvalidDefinition(
            f"{filename} has {len(data):,} bytes; a definition of this form may have "
            f"{MAX_BYTES[form]:,}",
            "Keep weights and data out of the definition's file.",
        )
    match form:
        case "python":
            tree = _parse(filename, data)
            _check_model(filename, tree)
            return Description("python", parameters=of_python(tree))
        case "huggingface":
            return describe_config(filename, data)
        case "program":
            return describe_program(filename, data)
        case "weights":
            return describe_weights(filename, data)


def _parse(filename: str, data: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data, filename)
    except SyntaxError as fault:
        line = f" line {fault.lineno}:" if fault.lineno else ""
        raise InvalidDefinition(f"{filename}:{line} not Python: {fault.msg}", CONTRACT) from None
    except (ValueError, RecursionError, MemoryError) as fault:
        raise InvalidDefinition(f"{filename}: not Python: {fault}", CONTRACT) from None


def _check_model(filename: str, tree: ast.Module) -> None:
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "model"
    ]
    if not found:
        raise InvalidDefinition(f"{filename} has no `def model()` at its top level", CONTRACT)
    function = found[-1]
    if isinstance(function, ast.AsyncFunctionDef):
        raise InvalidDefinition(f"{filename}: line {function.lineno}: model is async", CONTRACT)
    if needed := [each.arg for each, default in with_defaults(function.args) if default is None]:
        raise InvalidDefinition(
            f"{filename}: line {function.lineno}: model() needs {', '.join(needed)}",
            "Give every parameter of model() a default value: it is called without arguments.",
        )
