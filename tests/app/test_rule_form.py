"""Launch: the learning rate goes along with the optimizer, until a person types one."""

import pytest
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.planning.optimizers import OPTIMIZERS
from backend.runs.request.spec import TrainSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button


def chosen(page: AppTest, optimizer: str, prefix: str = "") -> float:
    """The rate once this optimizer is chosen."""
    page.selectbox(key=f"{prefix}optimizer").set_value(optimizer).run()
    return rate_of(page, prefix)


def rate_of(page: AppTest, prefix: str = "") -> float:
    return float(page.number_input(key=f"{prefix}lr").value or 0)


@pytest.mark.parametrize(("where", "prefix"), [(Page.LAUNCH, ""), (Page.PLAN, "launch-")])
def test_another_optimizer_brings_its_usual_rate(
    backend: Backend, seeded: seed.Seeded, open_page: Open, where: Page, prefix: str
) -> None:
    page = open_page(where, plan=seeded.plan)
    assert rate_of(page, prefix) == OPTIMIZERS["momentum"].rate
    for name in ("adam", "lion", "sgd", "adamw"):
        assert chosen(page, name, prefix) == OPTIMIZERS[name].rate
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.optimizer.name, spec.optimizer.learning_rate) == ("adamw", 1e-3)


def test_a_rate_that_was_typed_stays(seeded: seed.Seeded, open_page: Open) -> None:
    """Also where it is the usual one of another optimizer, and over a choice in between."""
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.number_input(key="lr").set_value(1e-3).run()
    assert [chosen(page, name) for name in ("adam", "lion", "momentum")] == [1e-3] * 3


def test_a_link_says_the_rate_or_means_the_usual_one(seeded: seed.Seeded, open_page: Open) -> None:
    asked = {"plan": seeded.plan, "optimizer": "adam"}
    assert rate_of(open_page(Page.LAUNCH, **asked)) == 1e-3
    page = open_page(Page.LAUNCH, **asked, lr=0.02)
    assert (rate_of(page), chosen(page, "lion")) == (0.02, 0.02)


def test_a_run_again_has_its_own_rate_with_its_own_optimizer(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.number_input(key="lr").set_value(0.05).run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    again = open_page(Page.LAUNCH, run=run.id)
    assert rate_of(again) == 0.05
    assert [chosen(again, name) for name in ("adam", "momentum")] == [1e-3, 0.05]


def test_a_plan_for_another_optimizer_is_launched_with_it(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    """The menu of the Plan page follows the plan; what was typed into it stays."""
    page = open_page(Page.PLAN, planner="straight", schedule="1f1b-flush")
    page.number_input(key="launch-epochs").set_value(7).run()
    page.selectbox(key="pick-optimizer").set_value("adamw").run()
    page.selectbox(key="pick-state-precision").set_value("bfloat16").run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.optimizer.name, spec.optimizer.learning_rate) == ("adamw", 1e-3)
    assert (spec.state_precision, spec.precision, spec.epochs) == ("bfloat16", "bfloat16", 7)
