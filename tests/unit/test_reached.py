"""What nobody reaches is no part of the product: every module is reached from an entry point, and
every public function, class and constant is used by product code."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from app.session.state import Page

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "backend", "workers", "migrations")

ENTRIES = {
    "app.cli": "the console script `stageflow`",
    "app.main": "the script that Streamlit runs, which app.asgi names by its path",
    "app.client": "what people import into programs of their own",
    "stageflow": "what notebooks import",
    "app.health": "what containers run to see whether they are well",
    "workers.celery_app": "what `celery -A` is told",
    "migrations.env": "what Alembic runs",
}
FOLDERS = {
    "migrations.versions": "Alembic reads every file",
    "workers.zoo": "the zoo is listed from its folder; files are loaded as uploads are",
}
"""Packages whose modules are found by looking into the folder."""

UNREACHED: dict[str, str] = {}
UNUSED = {
    "app.client.Client": "what people import into programs of their own",
    "backend.pipeline.links.ServerLinks": "links of a cluster without one, in tests of simulators",
    "backend.storage.visibility.EVERYBODYS": "a test asks it whether every table is accounted for",
}
"""Modules and public names that no product code reaches, and why they are there nevertheless."""


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product by its dotted name."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    files.append(ROOT / "stageflow.py")
    return {dotted(file): ast.parse(file.read_text()) for file in files}


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def named(tree: ast.Module) -> Iterator[str]:
    """What may be a module: all that is imported, and every text. Processes are started with
    `-m` and a module's name as text; so is what pages import ahead."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module, *(f"{module}.{alias.name}" for alias in names))
            case ast.Constant(value=str(text)):
                yield text


def reached() -> set[str]:
    folders = [m for m in modules() if m.rpartition(".")[0] in FOLDERS]
    pages = [dotted(ROOT / "app" / page.value) for page in Page]
    found: set[str] = set()
    left = [*ENTRIES, *folders, *pages]
    while left:
        module = left.pop()
        if module in found or module not in modules():
            continue
        found.add(module)
        left += [module.rpartition(".")[0], *named(modules()[module])]
    return found


def test_every_module_is_reached_from_an_entry_point() -> None:
    assert set(ENTRIES) <= set(modules())
    assert sorted(set(modules()) - reached() - set(UNREACHED)) == []


def defined(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Public functions, classes and constants; what a decorator registers is used by that."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                if not any(map(registers, node.decorator_list)):
                    yield name, node
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name, node
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node


def registers(decorator: ast.expr) -> bool:
    """As `@app.command(...)` or `@event.listens_for(...)`; not `@dataclass` and `@cache`."""
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute)


def used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.name for alias in names)
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text


def test_every_public_name_is_used_by_product_code() -> None:
    """By its name alone, so that a name which several modules define may hide one that is not
    used; there are no false alarms. A definition's use of itself does not count."""
    trees = {m: t for m, t in modules().items() if m.rpartition(".")[0] not in FOLDERS}
    uses = Counter(name for tree in trees.values() for name in used(tree))
    idle = [
        f"{module}.{name}"
        for module, tree in trees.items()
        for name, node in defined(tree)
        if not name.startswith("_") and uses[name] == Counter(used(node))[name]
    ]
    assert sorted(set(idle) - set(UNUSED)) == []
