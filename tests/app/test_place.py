"""Where a training runs: nodes and emulated devices are chosen, and what does not fit is said."""

from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.runs.request.spec import TrainSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of


def test_nodes_and_emulation_are_chosen(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    needed = backend.plans.get(seeded.plan).plan.partition.num_devices
    for name in ("left", "right"):
        backend.nodes.beat(name, (Device("cpu"),) * (needed - 1))
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    assert f"The plan uses {needed} devices and no node has more" in text_of(page)
    page.multiselect(key="place-nodes").set_value(["right"]).run()
    assert f"the plan uses {needed} devices, but right" in text_of(page)
    page.multiselect(key="place-nodes").set_value(["right", "left"]).run()
    assert "The plan uses" not in text_of(page)
    assert "the plan uses" not in text_of(page)
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.nodes, spec.emulate) == (("right", "left"), 0.0)


def test_an_emulated_run_is_marked(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.number_input(key="place-emulate").set_value(1.5).run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert run.spec.emulate == 1.5
    assert "emulated at 1.5" in text_of(open_page(Page.RUN, id=run.id))
