"""Names, notes, tags, logs and layers that are code: every page shows them as words."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.cluster.cluster import Device
from backend.cluster.presets import local
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Timeline
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.events import Metrics
from backend.runs.history.labels import Change
from backend.runs.run import RunError, RunSummary
from backend.runs.states import RunState
from tests.app import seed
from tests.e2e.conftest import settled, window
from tests.e2e.tour import PATIENCE, dashboard

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
TAG = '<img src="x:" onerror="window.harmed=1"><script>window.harmed=1</script>'
LINK = "[go](javascript:window.harmed=1) ![p](https://evil.example/p.png)"
BREAKS = "\"'`><svg onload=window.harmed=1> ${harm} {{harm}} \\u003cscript>"
WORDS = f"{TAG} {LINK} {BREAKS}"
SHORT = '<img src="x:" onerror="harmed=1">'
HARM = """() => ({
  harmed: window.harmed ?? null,
  made: document.querySelectorAll('img[src="x:"], svg[onload], a[href^="javascript:"]').length,
  scripts: [...document.scripts].filter((one) => one.text.includes('harmed=1')).length,
})"""
HARMLESS = {"harmed": None, "made": 0, "scripts": 0}


@dataclass(frozen=True)
class Hostile:
    """A dashboard full of words that are code, and the ids to look at."""

    url: str
    failed: int
    running: int
    succeeded: int


def a_hostile_profile() -> Profile:
    plain = seed.a_profile()
    layers = tuple(
        replace(layer, name=f"{SHORT}.{number}", kind=SHORT)
        for number, layer in enumerate(plain.layers)
    )
    return replace(plain, name=WORDS[:90], graph=ModelGraph.chain(layers), device=SHORT)


def fill() -> tuple[int, int, int]:
    """Runs whose every word is code: (failed, running, succeeded)."""
    backend = seed.fresh()
    backend.nodes.beat(seed.NODE, (Device(SHORT),), {"torch": SHORT, "sandbox": "bubblewrap"})
    source = f"def model(width=4, task={SHORT!r}): ...  # {WORDS}\n".encode()
    definition = backend.definitions.add("net.py", source, SHORT)
    backend.definitions.add_zoo("vgg_digits")
    stored = backend.profiles.add(a_hostile_profile(), definition.id)
    cluster = local(2)
    found = seed.predicted(stored.profile, cluster)
    straight = next(p for p in found if p.plan.partition.replicas == (1, 1))
    plan = backend.plans.save(stored.id, cluster, straight)
    failed = seed.submit(backend, definition.id, plan, WORDS[:190])
    attempt = seed.claim(backend, failed)
    attempt.logs([(1, time.time(), WORDS), (None, time.time(), TAG)])
    attempt.finish(RunState.FAILED, RunSummary(), RunError(SHORT, WORDS, WORDS, WORDS))
    succeeded = seed.succeeded(backend, definition.id, plan)
    attempt = seed.claim(backend, seed.submit(backend, definition.id, plan, TAG))
    seed.train_epoch(backend, attempt, plan, 0)
    attempt.metrics(Metrics(SHORT, (1, 2), (0.5, 0.25), (1.0, 2.0), 0))
    attempt.spans("measured", 0, 1, encode(Timeline.of(())), 0)
    ids = [failed.id, attempt.run.id, succeeded]
    tags = (SHORT[:40], "<b>bold</b>", "[x](javascript:harmed=1)")
    backend.labels.change(ids, Change(note=WORDS, tags=tags, starred=True))
    backend.close()
    return failed.id, attempt.run.id, succeeded


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    home = tmp_path_factory.mktemp("hostile")
    variables = {"STAGEFLOW_LEASE": "3600", "STAGEFLOW_USER": SHORT}
    with seed.settings(home, **variables):
        ids = fill()
    with dashboard(home, **variables) as url:
        yield Hostile(url, *ids)


@pytest.fixture(scope="module")
def visitor(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """One visitor of all pages, and whatever their scripts, dialogs and requests told."""
    context = window(browser)
    page = context.new_page()
    told: list[str] = []
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda one: "127.0.0.1" in one.url or told.append(one.url))
    yield page, told
    context.close()


LOOKS = {
    "start": "start",
    "models": "models",
    "profile": "profile",
    "plan": "plan",
    "schedules": "schedules",
    "what if": "what_if",
    "runs": "runs",
    "runs found": "runs?text=%3Cimg&tag=%3Cb%3Ebold%3C/b%3E&owner=" + "%3Cscript%3E",
    "failed": "run?id={0.failed}",
    "running": "run?id={0.running}",
    "succeeded": "run?id={0.succeeded}",
    "compare": "compare?runs={0.succeeded},{0.running}&metric=%3Cimg%20src%3Dx%3A%3E",
    "launch": "launch?run={0.succeeded}",
    "nodes": "nodes",
    "hostile address": "plan?planner=%3Cscript%3Eharmed%3D1%3C/script%3E&cut=%3Cimg%3E&batch=-1",
}


@pytest.mark.parametrize("look", LOOKS)
def test_no_word_runs(look: str, hostile: Hostile, visitor: tuple[Page, list[str]]) -> None:
    page, told = visitor
    page.goto(f"{hostile.url}/{LOOKS[look].format(hostile)}")
    expect(page.get_by_test_id("stApp")).to_be_visible(timeout=PATIENCE)
    settled(page)
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=PATIENCE)
    assert page.evaluate(HARM) == HARMLESS
    assert told == []


def test_the_words_are_there_to_be_read(hostile: Hostile, visitor: tuple[Page, list[str]]) -> None:
    page, _ = visitor
    page.goto(f"{hostile.url}/run?id={hostile.failed}")
    expect(settled(page).get_by_text("window.harmed=1").first).to_be_visible(timeout=PATIENCE)
