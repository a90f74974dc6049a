"""Seconds of the server until a page with a model of hundreds of layers is drawn.

    python -m tests.benchmarks.bench_big_models [--write]

Pages are drawn in this process, without a browser. A first draw computes all plans that the page
asks for; a further one finds them in the cache. Processor seconds, and those that pass.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import streamlit as st
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from tests.app import seed
from tests.benchmarks.evidence import evidence
from tests.unit.app.models import MODELS

MAIN = Path(__file__).parents[2] / "app" / "main.py"
ROUNDS = 5
SHOWN = (MODELS[0], MODELS[2], MODELS[5])
HEAD = ["page", "layers", "first draw: processor", "passed", "further draws: processor", "passed"]


def main() -> None:
    page = evidence("pages", "bench_big_models")
    with tempfile.TemporaryDirectory() as home, seed.settings(Path(home)):
        backend = seed.fresh()
        views = list(cases(backend))
        drawn(Page.START, {})  # imports what pages draw with
        page.table("big models", HEAD, (row(*view) for view in views))
        backend.close()


def cases(backend: Backend) -> Iterator[tuple[Page, int, str, dict[str, object]]]:
    """Page, layers, a word on them, parameters of the address."""
    definition = backend.definitions.add_zoo("gpt2").id
    backend.nodes.beat(seed.NODE)
    for model in SHOWN:
        stored, number = backend.profiles.add(model, definition), len(model.layers)
        plan = seed.plan_for(backend, stored)
        runs = [seed.succeeded(backend, definition, plan) for _ in range(2)]
        planned = {"profile": stored.id, "cluster": "cluster-a:4", "planner": "even-split"}
        for detail in ("Folded", "Layers") if model.name == "transformer" else ("Layers",):
            word = {"Folded": "folded", "Layers": "each"}[detail]
            yield Page.PROFILE, number, word, {"id": stored.id, "detail": detail}
            yield Page.PLAN, number, word, planned | {"detail": detail}
        yield Page.COMPARE, number, "two runs", {"runs": ",".join(map(str, runs))}


def row(page: Page, layers: int, word: str, params: dict[str, object]) -> list[str]:
    st.cache_resource.clear()
    st.cache_data.clear()
    first = drawn(page, params)
    rounds = [drawn(page, params) for _ in range(ROUNDS)]
    further = [statistics.median(times) for times in zip(*rounds, strict=True)]
    shown = (f"{value:.2f}" for value in (*first, *further))
    return [page.path, f"{layers}, {word}", *shown]


def drawn(page: Page, params: dict[str, object]) -> tuple[float, float]:
    """Seconds of the processor and seconds that pass, of a first visit to this address."""
    app = AppTest.from_file(MAIN, default_timeout=120)
    app.run()
    app.switch_page(page.value)
    for name, value in params.items():
        app.query_params[name] = str(value)
    processor, begin = time.process_time(), time.perf_counter()
    app.run()
    took = time.process_time() - processor, time.perf_counter() - begin
    assert not app.exception, app.exception
    return took


if __name__ == "__main__":
    main()
