"""No file is loaded in a way that runs what is in it, except inside the sandbox."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
ROOMS = ("app", "backend", "workers", "migrations")
RUNS_CODE = ("pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal")
INSIDE = ("workers/definitions", "workers/runtime", "workers/profiler", "workers/zoo")
"""Rooms whose code runs in the sandbox alone."""
ONLY_WRITES = "app/notebook/given_module.py"
"""Writes what a notebook's own person gave; that person's process reads it again."""


def faults(source: str, inside: bool = False) -> list[str]:
    return [fault for node in ast.walk(ast.parse(source)) for fault in _faults(node, inside)]


def _faults(node: ast.AST, inside: bool) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (name.name for name in names if name.name in RUNS_CODE)
        case ast.ImportFrom(module=module) if module in RUNS_CODE:
            yield module
        case ast.ImportFrom(module="torch", names=names) if any(n.name == "load" for n in names):
            yield "torch.load under another name"
        case ast.Call(func=ast.Attribute(attr="load") as func, keywords=keywords):
            name = ast.unparse(func)
            only = any(k.arg == "weights_only" and ast.unparse(k.value) == "True" for k in keywords)
            if name == "torch.load" and not only:
                yield ast.unparse(node)
            if name in ("torch.jit.load", "torch.export.load", "torch.hub.load") and not inside:
                yield ast.unparse(node)
        case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
            yield "allow_pickle"
        case _:
            pass


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_loaded_that_runs_code(room: str):
    found = {
        str(file.relative_to(ROOT)): wrong
        for file in (ROOT / room).rglob("*.py")
        if (wrong := faults(file.read_text(), str(file.relative_to(ROOT)).startswith(INSIDE)))
    }
    assert found == ({ONLY_WRITES: ["cloudpickle"]} if room == "app" else {})


def test_what_only_writes_reads_nothing():
    tree = ast.parse((ROOT / ONLY_WRITES).read_text())
    called = {node.func.attr for node in ast.walk(tree) if _is_method(node)}
    assert "dumps" in called
    assert not called & {"load", "loads", "Unpickler"}


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


@pytest.mark.parametrize(
    "source",
    [
        "torch.load(f)",
        "torch.load(f, weights_only=False)",
        "torch.load(f, weights_only=maybe)",
        "from torch import load",
        "import pickle",
        "from pickle import loads",
        "torch.export.load(f)",
        "numpy.load(f, allow_pickle=True)",
    ],
)
def test_what_is_not_allowed_is_found(source: str):
    assert faults(source)


def test_what_is_allowed_is_not():
    assert not faults("torch.load(f, map_location='cpu', weights_only=True)\njson.load(f)")
    assert not faults("torch.export.load(f)", inside=True)
