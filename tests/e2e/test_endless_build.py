"""A model whose making never ends: the page says where it is, and the run ends by itself."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from backend.runs.request.spec import ProfileSpec
from backend.runs.states import RunState
from tests.app import seed
from tests.e2e.conftest import settled
from tests.e2e.tour import dashboard
from workers.node_agent import NodeAgent

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
LIMIT = 16
MODEL = b"""
import time
import torch
from torch import nn

def model():
    while True:
        time.sleep(0.05)

def example(n):
    return torch.zeros(n, 4), torch.zeros(n, dtype=torch.long)
"""


def test_an_endless_loop_is_told_with_its_line_and_ends(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    variables = {"STAGEFLOW_BUILD": str(LIMIT)}
    with seed.settings(home, **variables):
        backend = seed.fresh()
        definition = backend.definitions.add("endless.py", MODEL)
        run = backend.runs.submit(ProfileSpec(definition.id, 2, 1))
        agent = NodeAgent(backend)
        with dashboard(home, **variables) as url:
            page.goto(f"{url}/run?id={run.id}")
            agent.start()
            try:
                notice = f"building the model for {LIMIT // 2} of {LIMIT} s, at endless.py, line 8"
                expect(settled(page).get_by_text(notice).first).to_be_visible(timeout=120_000)
                failed = f"making and tracing the model took longer than {LIMIT} s"
                expect(page.get_by_text(failed).first).to_be_visible(timeout=120_000)
                expect(page.get_by_text("Look for a loop that never ends").first).to_be_visible()
                expect(page.get_by_text("time.sleep(0.05)").first).to_be_attached()
            finally:
                agent.stop()
                agent.join()
        assert backend.runs.get(run.id).state is RunState.FAILED
        backend.close()
