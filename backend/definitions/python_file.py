"""A Python file of a definition, parsed and never run.

For some texts CPython's parser takes time that grows with their square, and 600 bytes of memory
for each of theirs. A text that is not small is therefore parsed by a process of its own, with an
end to both: `python -m backend.definitions.python_file` reads it on standard input.
"""

import ast
import os
import subprocess
import sys
import warnings
from functools import lru_cache

from backend.codec import from_json, to_json
from backend.definitions.definition import InvalidDefinition
from backend.definitions.parameters import Parameter, of_python, with_defaults
from backend.definitions.syntax import syntax_tree
from backend.few_at_once import FewAtOnce

CONTRACT = (
    "A definition is a Python file with `def model()` that returns a torch nn.Module. Beside it: "
    '`def example(batch)` that returns (inputs, targets), or `DATA = "digits"`; '
    "if wanted, `def loss(output, target)` and `def data()`."
)
SMALL = 16 * 1024
"""Bytes that are parsed here: within 0.02 s and 20 MiB, whatever they are."""
SECONDS, MEMORY = 5, 768 << 20
"""Processor time and bytes of the process that parses what is larger."""
PATIENCE = 60.0
_few = FewAtOnce("checks of large definitions", waiting=8)

Answer = tuple[Parameter, ...] | str
"""The parameters, or what is wrong."""


def parameters_of(filename: str, data: bytes) -> tuple[Parameter, ...]:
    """Raises `InvalidDefinition` where it can be no definition, and `TooBusy`."""
    found = parsed(data) if len(data) <= SMALL else _apart(data)
    if isinstance(found, str):
        why, _, advice = found.partition("\n")
        raise InvalidDefinition(f"{filename}: {why}", advice)
    return found


def parsed(data: bytes) -> Answer:
    """In this process, whatever that takes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = syntax_tree(data)
    except SyntaxError as fault:
        line = f"line {fault.lineno}: " if fault.lineno else ""
        return f"{line}not Python: {fault.msg}\n{CONTRACT}"
    except (ValueError, RecursionError, MemoryError) as fault:
        return f"not Python: {fault}\n{CONTRACT}"
    return _wrong(tree) or of_python(tree)


@lru_cache(maxsize=16)
def _apart(data: bytes) -> Answer:
    """By a process of its own. Raises `TooBusy`."""
    ours = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH"}
    command = [sys.executable, "-m", "backend.definitions.python_file"]
    with _few.turn():
        try:
            done = subprocess.run(
                command,
                input=data,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                check=True,
                env={name: value for name, value in os.environ.items() if name in ours},
            )
        except subprocess.SubprocessError:
            return (
                f"Python needs more than {SECONDS} s or {MEMORY >> 20} MiB to read it\n"
                "Keep generated code, weights and data out of the definition's file."
            )
    answer: Answer = from_json(Answer, done.stdout)
    return answer


def _wrong(tree: ast.Module) -> str:
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "model"
    ]
    if not found:
        return f"no `def model()` at its top level\n{CONTRACT}"
    function = found[-1]
    if isinstance(function, ast.AsyncFunctionDef):
        return f"line {function.lineno}: model is async\n{CONTRACT}"
    if needed := [each.arg for each, default in with_defaults(function.args) if default is None]:
        return (
            f"line {function.lineno}: model() needs {', '.join(needed)}\n"
            "Give every parameter of model() a default value: it is called without arguments."
        )
    return ""


def main() -> None:
    """Print the answer for the file on standard input."""
    import resource

    data = sys.stdin.buffer.read()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.buffer.write(to_json(Answer, parsed(data)))


if __name__ == "__main__":
    main()
