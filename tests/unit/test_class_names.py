"""One class name, one module: a reader who meets a name knows which class is meant."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "backend", "workers")
EXEMPT = "workers/zoo/"
"""Each model of the zoo is one self-contained file, under the names of its paper."""
STILL_DOUBLE: set[str] = set()


@cache
def modules_by_class() -> dict[str, set[str]]:
    """Each class name with the files that define it."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            place = str(file.relative_to(ROOT))
            if not place.startswith(EXEMPT):
                for node in ast.walk(ast.parse(file.read_text())):
                    if isinstance(node, ast.ClassDef):
                        found[node.name].add(place)
    return found


def test_a_class_name_is_defined_in_one_module() -> None:
    double = {name: sorted(files) for name, files in modules_by_class().items() if len(files) > 1}
    assert {name: files for name, files in double.items() if name not in STILL_DOUBLE} == {}


def test_names_that_are_no_longer_double_leave_the_list() -> None:
    found = modules_by_class()
    assert sorted(name for name in STILL_DOUBLE if len(found.get(name, ())) < 2) == []
