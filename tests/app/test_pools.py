"""Pools on the pages: what they have, what waits for them, and runs for them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.formats import duration
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import read_cluster
from backend.links.link_test import Link
from backend.runs.pools.job import JobState, Seen
from backend.runs.pools.room import BETWEEN, INSIDE, ForetoldStart, Machines, PoolRoom
from backend.runs.request.spec import PoolSpec, ProfileSpec, TrainSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of

H100 = Device("h100", 80e9)
ROOM = PoolRoom((Machines(Device("a100"), 2, (2,)), Machines(H100, 4, (4, 0, 3))), 7200.0)


@pytest.fixture
def pool(backend: Backend) -> None:
    backend.pools.beat("gpu", "slurm", ROOM)


def test_the_page_has_no_pools_where_there_are_none(backend: Backend, open_page: Open) -> None:
    seed.everything(backend)
    assert "Pools" not in text_of(open_page(Page.NODES))


@pytest.mark.usefixtures("pool")
def test_what_a_pool_has_and_what_waits_for_it(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    backend.runs.submit(ProfileSpec(definition.id, pool=PoolSpec("gpu")))
    ((job, _),) = backend.pools.begin("gpu")
    backend.pools.seen(job, Seen("41", JobState.WAITING, "Priority"))
    page = open_page(Page.NODES)
    text = text_of(page)
    for told in (
        "3 × 4 h100",
        "9 of 14",
        duration(7200.0),
        "1 waiting",
        r"waits in gpu\: Priority",
    ):
        assert told in text
    assert "No node agent is alive" not in text
    assert "No node yet" not in text
    backend.pools.beat("gpu", "slurm", None, "the controller does not answer")
    assert "does not answer" in text_of(open_page(Page.NODES))


@pytest.mark.usefixtures("pool")
def test_its_machines_are_planned_for(backend: Backend, open_page: Open) -> None:
    page = button(open_page(Page.NODES), "Plan").click().run()
    levels = (Level(4, INSIDE), Level(3, BETWEEN))
    assert read_cluster(param(page, "cluster")) == Cluster(levels, H100)


@pytest.mark.usefixtures("pool")
def test_links_of_its_machines_are_asked_for_and_planned_on(
    backend: Backend, open_page: Open
) -> None:
    page = button(open_page(Page.NODES), "Measure in gpu").click().run()
    asked = backend.links.tests.latest()
    assert (asked.pool, asked.num_devices) == ("gpu", 8)
    assert [test.id for test in backend.links.tests.of_pool("gpu")] == [asked.id]
    assert backend.links.tests.of_pool("other") == []
    assert "8 devices on 2 machines" in text_of(page).replace("\xa0", " ")
    backend.links.tests.finish(asked.id, (Link(0, 1, 2e10, 1e-5), Link(0, 4, 2e9, 1e-4)))
    page = button(open_page(Page.NODES), "Plan on these links").click().run()
    levels = read_cluster(param(page, "cluster")).levels
    assert [(level.count, level.bandwidth) for level in levels] == [(4, 2e10), (2, 2e9)]


@pytest.mark.usefixtures("pool")
def test_a_training_is_launched_for_a_pool(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    told = "Pool gpu: 9 of 14\xa0devices free"
    assert page.selectbox(key="place-pool").options == ["Agents of nodes", told]
    page.selectbox(key="place-pool").set_value("gpu").run()
    page.number_input(key="place-machines").set_value(2).run()
    page.number_input(key="place-minutes").set_value(90.0).run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.pool, spec.nodes) == (PoolSpec("gpu", 2, 0, 5400.0), ())


def test_the_start_that_the_cluster_foretells_is_told_before_the_launch(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    now = datetime.now(UTC)
    starts = (
        ForetoldStart(1, 4, now, now),
        ForetoldStart(2, 4, now + timedelta(days=2, hours=3), now),
    )
    backend.pools.beat("gpu", "slurm", replace(ROOM, starts=starts))
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="place-pool").set_value("gpu").run()
    assert "with 4\xa0devices would start at once, by the estimate of gpu, just now." in text_of(
        page
    )
    page.number_input(key="place-machines").set_value(2).run()
    later = f"would start at {starts[1].expected:%Y-%m-%d %H:%M} UTC".replace(":", r"\:")
    assert later in text_of(page)
    page.number_input(key="place-machines").set_value(3).run()
    assert "would start" not in text_of(page)


@pytest.mark.usefixtures("pool")
def test_a_profile_is_asked_of_a_pool(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    page = open_page(Page.MODELS, id=definition.id)
    page.selectbox(key=f"profile-{definition.id}-pool").set_value("gpu")
    button(page, "Start profiling").click().run()
    assert backend.runs.list(limit=1).runs[0].spec.pool == PoolSpec("gpu")
