"""Sweeps: asked for on Launch, followed and cancelled on their own page."""

from app.charts.parallel import parallel
from app.formats import SPACE
from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.runs.sweeps.axes import read_axis
from backend.runs.sweeps.sweep import Sweep, SweepSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, text_of

AXES = ("lr=0.1,0.01,0.001", "schedule=pipedream,gpipe")


def half_done(backend: Backend, seeded: seed.Seeded) -> Sweep:
    """Three of six runs have ended, the second with the best loss."""
    plan = backend.plans.get(seeded.plan)
    base = TrainSpec(seeded.definition, plan.plan, plan.id)
    sweep = backend.sweeps.start(SweepSpec(base, tuple(map(read_axis, AXES))), "rates")
    for number, loss in zip(sweep.run_ids, (0.5, 0.2, 0.9), strict=False):
        attempt = seed.claim(backend, backend.runs.get(number))
        summary = RunSummary(metrics={HELD_OUT_LOSS: loss}, samples_per_second=1000 * loss)
        attempt.finish(RunState.SUCCEEDED, summary)
    return sweep


def test_a_sweep_is_launched_as_one(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    field = next(field for field in page.text_area if field.label == "Vary")
    field.set_value("lr=0.1,0.01\nrate=1").run()
    button(page, f"Start 2{SPACE}runs").click().run()
    assert "no setting 'rate'" in text_of(page).lower()
    assert not backend.sweeps.list()
    field = next(field for field in page.text_area if field.label == "Vary")
    field.set_value("lr=log:0.1:1").run()
    assert "a grid has no ranges" in text_of(page).lower()
    assert button(page, "Start run").disabled
    field = next(field for field in page.text_area if field.label == "Vary")
    field.set_value("lr = 0.1, 0.01\nschedule = pipedream, gpipe").run()
    button(page, f"Start 4{SPACE}runs").click().run()
    assert not page.exception
    (found,) = backend.sweeps.list()
    assert len(found.sweep.run_ids) == 4
    assert "0 of 4" in figures_of(page)["Ended"][0]


def test_a_sweep_is_followed_and_cancelled(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    sweep = half_done(backend, seeded)
    page = open_page(Page.SWEEPS)
    assert "3 of 6 ended" in text_of(page)
    page = open_page(Page.SWEEPS, id=sweep.id)
    told = figures_of(page)
    assert told["Ended"][0] == "3 of 6"
    assert told[f"Best {HELD_OUT_LOSS}"][0] == "0.2"
    table = page.dataframe[0].value
    assert list(table["schedule"]) == ["pipedream", "gpipe"] * 3
    assert list(table["best"]) == ["", "★", "", "", "", ""]
    button(page, "Cancel the sweep").click().run()
    assert not page.exception
    assert figures_of(page)["Ended"][0] == "6 of 6"
    states = [backend.runs.get(number).state for number in sweep.run_ids]
    assert states == [RunState.SUCCEEDED] * 3 + [RunState.CANCELLED] * 3


def test_a_run_is_a_line_through_its_values(backend: Backend, seeded: seed.Seeded) -> None:
    found = backend.sweeps.get(half_done(backend, seeded).id)
    (trace,) = parallel(found, larger=False).data
    assert [axis.label for axis in trace.dimensions] == [
        *("lr (log)", "schedule", "samples/s", HELD_OUT_LOSS)
    ]
    assert list(trace.dimensions[0].values) == [-1.0, -1.0, -2.0]
    assert list(trace.dimensions[0].ticktext) == ["0.01", "0.1"]
    assert list(trace.dimensions[1].values) == [1, 0, 1]
    assert list(trace.dimensions[-1].values) == list(trace.line.color) == [0.5, 0.2, 0.9]
