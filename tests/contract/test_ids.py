"""A number that no row can have, wherever a service takes one: not found, never a fault."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from backend.bootstrap import Backend
from backend.errors import NotFound
from backend.services.people.access import NotAllowed

LARGEST = 2**31 - 1


def takers(backend: Backend) -> Iterator[tuple[str, Callable[[int], object]]]:
    """What can be asked for by one id alone, by its name."""
    services = {n: s for n, s in vars(backend).items() if type(s).__name__.endswith("Service")}
    stores = {
        f"{name}.{held}": store
        for name, service in services.items()
        for held, store in vars(service).items()
        if not held.startswith("_") and type(store).__name__.startswith("Sql")
    }
    for name, service in (services | stores).items():
        for method_name, method in inspect.getmembers(service, inspect.ismethod):
            needed = [
                (each.name, each.annotation)
                for each in inspect.signature(method).parameters.values()
                if each.default is each.empty
            ]
            match needed:
                case [(asked, annotation)] if annotation is int and asked.endswith("_id"):
                    if not method_name.startswith("_"):
                        yield f"{name}.{method_name}", method


@pytest.mark.parametrize("number", [-1, 0, LARGEST, LARGEST + 1, 2**63, 2**70, -(2**70)])
def test_an_id_that_nothing_has(backend: Backend, number: int):
    found = dict(takers(backend))
    assert {
        "runs.get",
        "definitions.get",
        "plans.get",
        "runs.metrics.names",
        "links.tests.get",
    } < found.keys()
    for method in found.values():
        with suppress(NotFound, NotAllowed):
            method(number)
    assert backend.runs.several([number]) == []
    assert backend.profiles.list(number) == backend.plans.list(number) == []


@pytest.mark.parametrize("name", ["7" * 10, "7" * 5_000])
def test_a_project_by_a_number_that_nothing_has(backend: Backend, name: str):
    with pytest.raises(NotFound):
        backend.projects.named(name)
