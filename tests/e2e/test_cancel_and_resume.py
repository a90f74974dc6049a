"""A training is cancelled in the browser, keeps a checkpoint, and goes on from it as a new run."""

import re

import pytest
from playwright.sync_api import Page, expect

from app import example
from app.client import Client
from backend.cluster.document import write_cluster
from backend.cluster.presets import local
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run
from tests.e2e.conftest import keep_screenshot, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
EPOCHS = 3000
RUN_SECONDS = 240_000


def launched(client: Client) -> Run:
    """A training of the example that goes on for as long as nobody cancels it."""
    definition = client.add_zoo(example.MODEL)
    profiled = client.wait(client.submit(ProfileSpec(definition.id, example.MICROBATCH)).id)
    assert profiled.summary.profile_id is not None
    cluster = write_cluster(local(2))
    found = client.propose(profiled.summary.profile_id, cluster)
    cut = next(p for p in found if len(p["prediction"]["plan"]["partition"]["stages"]) == 2)
    plan = client.save_plan(profiled.summary.profile_id, cluster, cut["prediction"]["plan"])
    return client.submit(TrainSpec(definition.id, plan.plan, plan.id, epochs=EPOCHS), "long")


def test_a_cancelled_training_goes_on_where_it_was(page: Page, url: str) -> None:
    run = launched(Client(url))
    page.goto(f"{url}/run?id={run.id}")
    expect(page.get_by_text("Measured above predicted").first).to_be_visible(timeout=RUN_SECONDS)
    settled(page).get_by_role("button", name="Cancel").click()
    settled(page).get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("cancelled").first).to_be_visible(timeout=RUN_SECONDS)
    expect(page.get_by_text("Checkpoints").first).to_be_visible()
    keep_screenshot(page, "run-cancelled-with-checkpoint")
    page.reload()  # a run that has ended is drawn once: nothing moves under the mouse
    expect(page.get_by_text("Checkpoints").first).to_be_visible()
    settled(page).get_by_role("button", name="Resume", exact=True).click()
    settled(page).get_by_role("button", name="Resume the run").click()
    page.wait_for_url(lambda address: f"id={run.id}" not in address)
    expect(page.get_by_role("link", name=f"from run {run.id}").first).to_be_visible()
    expect(page.get_by_text(re.compile("goes on from update")).first).to_be_visible(
        timeout=RUN_SECONDS
    )
    settled(page).get_by_role("button", name="Cancel").click()
    settled(page).get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("cancelled").first).to_be_visible(timeout=RUN_SECONDS)
