"""Nodes: none, free, busy, silent; the queue and its reasons."""

import time
from unittest.mock import Mock

from streamlit.testing.v1 import AppTest

from app.charts.use import MEASURES
from app.formats import clock
from app.server import connection
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.document import read_cluster
from backend.cluster.presets import LOOPBACK_BANDWIDTH, local
from backend.links.link_test import Link
from backend.runs.request.spec import ProfileSpec
from backend.runs.use import Use, UsePoint
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, param, text_of


def test_without_a_node_the_page_says_how_to_start_one(backend: Backend, open_page: Open) -> None:
    text = text_of(open_page(Page.NODES))
    assert "No node yet" in text
    assert "stageflow worker" in text
    assert "No run is waiting" in text


def test_what_nodes_have_and_do(backend: Backend, open_page: Open) -> None:
    seed.everything(backend)
    device = local(2).device
    backend.nodes.beat(seed.NODE, (device, device), {"torch": "2.13.0"})
    backend.nodes.beat("node-2", (device,), use=(Use("machine", 0.43, 1e9, 4e9),))
    page = open_page(Page.NODES)
    shown = figures_of(page)
    assert shown["Nodes alive"] == ("2", "of 2 known")
    assert shown["Held"] == ("2", "1 device free")
    assert shown["Queue"][0] == "1"
    text = text_of(page)
    assert f"2 × {device.name}" in text
    assert "torch 2.13.0" in text
    assert "machine 43\u00a0%" in text
    assert "busy" in text
    assert "free" in text


def test_use_over_time_of_a_node_and_of_a_run(
    seeded: seed.Seeded, backend: Backend, open_page: Open
) -> None:
    """Each in a card of its own, a picture for what is known."""
    now = time.time()
    points = [UsePoint(now - 60 + 5 * n, (Use("machine", 0.5, 1e9, 4e9),)) for n in range(3)]
    backend.use.keep_of_node(seed.NODE, [(0, point) for point in points])
    assert {"**Compute**", "**Memory**"} == _measures(open_page(Page.NODES))
    assert _measures(open_page(Page.RUN, id=seeded.running)) == set()
    run = backend.runs.submit(ProfileSpec(seeded.definition))
    seed.claim(backend, run).use([(0, point) for point in points])
    assert {"**Compute**", "**Memory**"} == _measures(open_page(Page.RUN, id=run.id))


def _measures(page: AppTest) -> set[str]:
    shown = {each.value.removeprefix(":small[").removesuffix("]") for each in page.markdown}
    return {f"**{each.title}**" for each in MEASURES} & shown


def test_the_queue_says_why(seeded: seed.Seeded, backend: Backend, open_page: Open) -> None:
    """There is no Redis in this test: everybody waits for the same reason."""
    seed.submit(backend, seeded.definition, backend.plans.get(seeded.plan))
    text = text_of(open_page(Page.NODES))
    assert "Redis does not answer" in text
    assert "For the same reason." in text


def test_a_silent_node(backend: Backend, open_page: Open, monkeypatch) -> None:
    backend.nodes.beat("node-1")
    monkeypatch.setenv("STAGEFLOW_LEASE", "1e-9")
    connection._connected.cache_clear()
    page = open_page(Page.NODES)
    connection._connected.cache_clear()
    assert "silent" in text_of(page)
    assert figures_of(page)["Nodes alive"] == ("0", "of 1 known")
    assert "No node agent is alive" in page.warning[0].value


def test_a_node_whose_clock_is_off(backend: Backend, open_page: Open, monkeypatch) -> None:
    right = time.time
    monkeypatch.setattr("backend.storage.nodes.nodes.time", Mock(time=lambda: right() + 3600))
    backend.nodes.beat("node-1")
    assert clock(3600.0) in text_of(open_page(Page.NODES))


def test_links_are_measured_and_planned_on(backend: Backend, open_page: Open) -> None:
    for node in ("a", "b"):
        backend.nodes.beat(node, (local(1).device,))
    page = open_page(Page.NODES)
    assert "Not measured yet" in text_of(page)
    page = button(page, "Measure links").click().run()
    assert "waiting for the nodes" in text_of(page)
    asked = backend.links.tests.latest()
    assert asked is not None
    backend.links.tests.finish(asked.id, (Link(0, 1, 2.5e8, 1e-4),))
    page = open_page(Page.NODES)
    text = text_of(page)
    assert "250\u00a0MB/s" in text
    assert "100\u00a0µs" in text
    page = button(page, "Plan on these links").click().run()
    found = read_cluster(param(page, "cluster"))
    assert [(level.count, level.bandwidth) for level in found.levels] == [
        (1, LOOPBACK_BANDWIDTH),
        (2, 2.5e8),
    ]


def test_links_that_could_not_be_measured_say_why(backend: Backend, open_page: Open) -> None:
    for node in ("a", "b"):
        backend.nodes.beat(node, (local(1).device,))
    asked = backend.links.ask(backend.nodes.list())
    backend.links.tests.fail(asked.id, "b did not come")
    assert "b did not come" in open_page(Page.NODES).warning[-1].value


def test_kept_clusters_are_renamed_and_deleted(backend: Backend, open_page: Open) -> None:
    kept = backend.clusters.save("our room", local(4))
    page = open_page(Page.NODES)
    assert "4 × cpu" in text_of(page)
    next(field for field in page.text_input if field.value == "our room").set_value("the hall")
    button(page, "Save changes").click().run()
    assert backend.clusters.get(kept.id).name == "the hall"
    page = open_page(Page.NODES)
    button(page, "Delete the cluster").click().run()
    assert not page.exception
    assert not backend.clusters.list()
