"""Nodes: none, free, busy, silent; the queue and its reasons."""

from app.state import Page
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.runs.nodes import Use
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import figures_of, text_of


def test_without_a_node_the_page_says_how_to_start_one(backend: Backend, open_page: Open) -> None:
    text = text_of(open_page(Page.NODES))
    assert "No node yet" in text
    assert "stageflow worker" in text
    assert "Nothing waits" in text


def test_what_nodes_have_and_do(backend: Backend, open_page: Open) -> None:
    seed.everything(backend)
    device = local(2).device
    backend.nodes.beat(seed.NODE, (device, device), {"torch": "2.13.0"})
    backend.nodes.beat("node-2", (device,), use=(Use("machine", 0.43, 1e9, 4e9),))
    page = open_page(Page.NODES)
    shown = figures_of(page)
    assert shown["Nodes alive"] == ("2", "of 2 known")
    assert shown["Busy"] == ("1", "1 free")
    assert shown["Queue"][0] == "1"
    text = text_of(page)
    assert f"2 × {device.name}" in text
    assert "torch 2.13.0" in text
    assert "machine 43\u00a0%" in text
    assert "busy" in text
    assert "free" in text


def test_the_queue_says_why(seeded: seed.Seeded, backend: Backend, open_page: Open) -> None:
    """There is no Redis in this test: everybody waits for the same reason."""
    seed.submit(backend, seeded.definition, backend.plans.get(seeded.plan))
    text = text_of(open_page(Page.NODES))
    assert "Redis does not answer" in text
    assert "For the same reason." in text


def test_a_silent_node(backend: Backend, open_page: Open, monkeypatch) -> None:
    backend.nodes.beat("node-1")
    monkeypatch.setenv("STAGEFLOW_LEASE", "1e-9")
    from app import services

    services._connected.clear()
    page = open_page(Page.NODES)
    services._connected.clear()
    assert "silent" in text_of(page)
    assert figures_of(page)["Nodes alive"] == ("0", "of 1 known")
    assert "No node agent is alive" in page.warning[0].value
