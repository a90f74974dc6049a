"""Compare: none, one, several, some that are not there, live ones."""

import time
from dataclasses import replace

from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.events import HELD_OUT_LOSS, Metrics
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of


def test_without_trainings_the_page_says_what_to_do(backend: Backend, open_page: Open) -> None:
    assert "No training run yet" in text_of(open_page(Page.COMPARE))


def test_nothing_chosen(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE)
    assert "Choose runs above" in text_of(page)
    page.multiselect[0].set_value([seeded.succeeded, seeded.running]).run()
    assert param(page, "runs") == f"{seeded.succeeded},{seeded.running}"
    assert "Summary" in text_of(page)


def test_runs_of_the_link_side_by_side(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.succeeded},{seeded.running},{seeded.failed}")
    text = text_of(page)
    assert page.multiselect[0].value == [seeded.succeeded, seeded.running, seeded.failed]
    assert "96.8\u00a0%" in text
    assert "To 95\u00a0%" in text
    assert "F1" in text
    assert "0.95" in text
    assert "Metrics" in text
    assert not page.exception
    assert not page.error


def test_the_same_parameters_are_said_to_be_the_same(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.succeeded},{seeded.running}")
    assert "same parameters" in text_of(page)
    page.toggle(key="differing").set_value(False).run()
    (table,) = page.table
    assert "`optimizer.learning_rate`" in set(table.value["Parameter"])


def test_axis_metric_and_smoothing(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.succeeded},{seeded.running}")
    for axis in ("epochs", "samples", "wall clock"):
        page.segmented_control(key="axis").set_value(axis).run()
        assert not page.error
    page.segmented_control(key="metric").set_value("accuracy").run()
    page.slider(key="smoothing").set_value(0.6).run()
    page.toggle(key="log").set_value(True).run()
    assert not page.error
    assert not page.exception


def test_runs_that_are_not_there_are_named(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.succeeded},{seeded.profiled},99,x,-4")
    assert page.warning[0].value == f"No training run {seeded.profiled}, 99, x, -4."
    assert "Summary" in text_of(page)


def test_runs_without_metrics(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.cancelled},{seeded.queued}")
    assert "reported a metric yet" in text_of(page)
    assert not page.error


def test_timelines_of_runs_stand_below_each_other(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.succeeded},{seeded.running},{seeded.failed}")
    assert "Timelines" in text_of(page)
    assert page.selectbox(key="compared-epoch").value == 1  # the newest that both have
    assert "No timeline of epoch 2\\: broken loss." in text_of(page)
    page.selectbox(key="compared-epoch").set_value(3).run()
    assert param(page, "epoch") == "4"
    assert "No timeline of epoch 4\\: vgg\\_digits again, broken loss." in text_of(page)
    assert not page.error


def test_runs_of_one_name_are_told_apart_by_their_numbers(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.COMPARE, runs=f"{seeded.succeeded},{seeded.queued},{seeded.running}")
    page.toggle(key="differing").set_value(False).run()
    (table,) = page.table
    numbers = [f"vgg\\_digits · run {n}" for n in (seeded.succeeded, seeded.queued)]
    assert list(table.value)[1:] == [*numbers, "vgg\\_digits again"]
    rows = dict(zip(table.value["Parameter"], table.value[numbers[0]], strict=True))
    assert rows["`plan`"].endswith(f" · plan {seeded.plan}")
    assert rows["`definition`"].startswith("vgg\\_digits@")


def test_two_plans_side_by_side(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    first = backend.plans.get(seeded.plan)
    slower = replace(first.prediction, plan=replace(first.plan, schedule="1f1b-flush", batch=4))
    second = backend.plans.save(seeded.profile, first.cluster, slower, "flushed")
    page = open_page(Page.COMPARE, of="plans", plans=f"{first.id},{second.id}")
    (table,) = page.table
    rows = dict(zip(table.value["Figure"], table.value["Second: flushed"], strict=True))
    assert rows["Schedule"] == "1f1b-flush"
    assert "Throughput" not in rows
    assert "throughput" in text_of(page)  # among what is the same
    assert "Timelines" in text_of(page)
    assert not page.error
    assert not page.exception


def test_two_ticked_plans_are_compared(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    first = backend.plans.get(seeded.plan)
    second = backend.plans.save(seeded.profile, first.cluster, first.prediction, "again")
    page = open_page(Page.PLAN, profile=seeded.profile)
    page.checkbox(key=f"tick-{first.id}").check().run()
    assert button(page, "Compare").disabled
    page.checkbox(key=f"tick-{second.id}").check().run()
    assert not button(page, "Compare").disabled
    page = open_page(Page.COMPARE, of="plans", plans=f"{first.id},{second.id}")
    assert "These plans are the same." in text_of(page)


def test_plans_that_are_not_there_are_named(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.COMPARE, of="plans", plans=f"{seeded.plan},99")
    assert page.warning[0].value == "No plan 99."
    assert "Choose two plans" in text_of(open_page(Page.COMPARE, of="plans"))


def test_the_time_to_a_loss_is_taken_where_no_run_has_an_accuracy(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    plan = backend.plans.get(seeded.plan)
    runs = []
    for losses in ((2.0, 1.0, 0.5), (2.0, 1.5, 1.0)):
        attempt = seed.claim(backend, seed.submit(backend, seeded.definition, plan, "language"))
        steps, start = (9, 19, 29), time.time()
        times = tuple(start + step for step in steps)
        attempt.metrics(Metrics(HELD_OUT_LOSS, steps, losses, times, 0))
        attempt.finish(RunState.SUCCEEDED, RunSummary(loss=losses[-1]))
        runs.append(backend.runs.list(limit=1).runs[0].id)
    page = open_page(Page.COMPARE, runs=",".join(map(str, runs)))
    assert not page.exception
    (field,) = [number for number in page.number_input if number.label == "Time to held-out loss"]
    assert field.value == 1.0  # what both reached
    assert "To held-out loss 1" in text_of(page)
