"""Run: none, queued, running, succeeded, failed, cancelled, a profile's, one that is not there."""

from dataclasses import replace

from app.exports.run_document import run_document
from app.formats import seconds
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Level
from backend.people.project import DEFAULT_PROJECT, Retention
from backend.planning.sites import OTHER_LABELS
from backend.runs.events import ACCURACY, LOSS, OF_SITES, CoreUse, Metrics, of_stage
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, param, text_of


def test_without_runs_the_page_says_what_to_do(backend: Backend, open_page: Open) -> None:
    assert "No run yet" in text_of(open_page(Page.RUN))


def test_without_an_id_the_newest_is_shown(seeded: seed.Seeded, open_page: Open) -> None:
    assert open_page(Page.RUN).title[0].value.endswith(f"run {seeded.queued}")


def test_an_unknown_run_is_said_calmly(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=99)
    assert "No run 99" in text_of(page)
    assert not page.exception


def test_a_queued_run_says_why_it_waits(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.queued)
    assert page.warning  # no Redis in this test: the page says so and what to do
    assert not page.exception


def test_a_running_run_has_figures_timelines_and_log(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.running)
    shown = figures_of(page)
    assert shown["Accuracy, held out"] == ("87.5 %", "target 95 %")
    assert shown["Per minibatch"][1].startswith("predicted")
    text = text_of(page)
    assert "Measured above predicted" in text
    assert "Where the time went" in text
    assert "Median error per action" in text  # against a simulation: nothing is stored yet
    assert "sandbox: bubblewrap" in text
    assert "update 47 loss" in page.code[0].value
    assert button(page, "Cancel the run")


def test_metrics_of_the_definition_have_curves(seeded: seed.Seeded, open_page: Open) -> None:
    text = text_of(open_page(Page.RUN, id=seeded.running))
    assert "F1" in text
    assert "of the model definition" in text


def test_heads_of_stages_are_drawn_together(backend: Backend, open_page: Open) -> None:
    """A line for each in the model's own chart, and no card by itself."""
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    attempt = seed.running(backend, definition.id, seed.plan_for(backend, profile))
    for name in (LOSS, ACCURACY):
        for stage in (0, 1):
            attempt.metrics(Metrics(of_stage(name, stage), (1, 2), (0.5, 0.4), (1.0, 2.0)))
    page = open_page(Page.RUN, id=attempt.run.id)
    assert not page.exception
    text = text_of(page)
    assert "Accuracy" in text
    assert "of stage" not in text
    charts = [chart.proto for chart in page.get("vega_lite_chart")]
    together = [each for each in charts if '"stage 1"' in each.spec]
    assert len(together) == 2


def test_how_far_sites_are_apart_is_drawn_with_what_makes_them_learn_worse(
    backend: Backend, open_page: Open
) -> None:
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    attempt = seed.running(backend, definition.id, seed.plan_for(backend, profile))
    assert OTHER_LABELS not in text_of(open_page(Page.RUN, id=attempt.run.id))
    for name in OF_SITES:
        attempt.metrics(Metrics(name, (1, 2), (0.5, 0.4), (1.0, 2.0)))
    page = open_page(Page.RUN, id=attempt.run.id)
    assert not page.exception
    assert OTHER_LABELS in text_of(page)
    assert "Bytes between sites" in text_of(page)
    assert "Bytes of sums between sites" not in text_of(page)  # a line of the same chart
    charts = [chart.proto.spec for chart in page.get("vega_lite_chart")]
    assert len([spec for spec in charts if "as sums of gradients" in spec]) == 1


def test_the_line_of_a_run_says_what_else_its_plan_is(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    kept = backend.plans.get(seeded.plan)
    flushed = kept.plan.under("1f1b-flush", 4)
    plan = replace(flushed, codecs=("bf16",), recompute=True)
    spec = TrainSpec(seeded.definition, plan, kept.id)
    said = text_of(open_page(Page.RUN, id=backend.runs.submit(spec).id))
    assert "1f1b-flush** · batch 4 · codec bf16 · recomputed · SGD" in said


def test_what_it_was_asked_for_is_a_table(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.succeeded)
    (table,) = [frame.value for frame in page.dataframe if "parameter" in frame.value.columns]
    rows = dict(zip(table["parameter"], table["value"], strict=True))
    assert rows["epochs"] == "4"
    assert not any(name.startswith("optimizer.") for name in rows)
    said = "As usual: seed 0, optimizer.name momentum, optimizer.learning\\_rate 0.01."
    assert said in text_of(page)


def test_the_log_can_be_searched(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.running)
    (search,) = [field for field in page.text_input if field.label == "Search in the log"]
    search.set_value("update 7 ").run()
    assert len(page.code[0].value.splitlines()) == 1
    shared = open_page(Page.RUN, id=seeded.running, search="update 7 ")
    assert len(shared.code[0].value.splitlines()) == 1
    search.set_value("nowhere").run()
    assert "No line contains" in text_of(page)


def test_measured_and_predicted_are_joined_action_by_action(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUN, id=seeded.succeeded)
    tables = [table.value for table in page.dataframe]
    (kinds,) = [table for table in tables if "median error" in table.columns]
    (largest,) = [table for table in tables if "error, %" in table.columns]
    assert {"forward", "backward", "optimizer"} <= set(kinds["action"])
    assert len(largest) == 20
    assert largest["error"].str.endswith("s").all()
    assert not page.exception


def test_an_older_epoch_can_be_looked_at(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.succeeded)
    before = [line for line in text_of(page).splitlines() if "Median error" in line]
    page.selectbox[0].select_index(4).run()
    after = [line for line in text_of(page).splitlines() if "Median error" in line]
    assert before != after
    assert param(page, "epoch") == "1"
    shared = open_page(Page.RUN, id=seeded.succeeded, epoch=1)
    assert after == [line for line in text_of(shared).splitlines() if "Median error" in line]
    assert not page.exception


def test_cancelling_asks_the_holder_to_end(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUN, id=seeded.running)
    button(page, "Cancel the run").click().run()
    assert backend.runs.get(seeded.running).cancel_requested
    assert "Cancelling" in open_page(Page.RUN, id=seeded.running).progress[0].text


def test_a_failed_run_shows_its_error_first_and_keeps_its_log(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUN, id=seeded.failed)
    assert "nan after update 3" in page.error[0].value
    assert "smaller learning rate" in page.error[0].value
    assert "Traceback" in page.expander[0].code[0].value
    assert any("update 3 loss nan" in code.value for code in page.code)
    assert not page.metric
    assert not [b for b in page.button if b.label == "Cancel the run"]


def test_a_cancelled_run_is_calm(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.cancelled)
    assert "cancelled" in text_of(page)
    assert not page.error


def test_a_run_says_what_its_projects_rule_took_away(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    words = "retention rule deleted the log, timelines and checkpoints on"
    assert words not in text_of(open_page(Page.RUN, id=seeded.succeeded))
    backend.projects.retain(DEFAULT_PROJECT, Retention(days=0, last=0))
    assert seeded.succeeded in backend.retention.clean()
    page = open_page(Page.RUN, id=seeded.succeeded)
    assert words in page.info[0].value
    assert "retention rule has deleted the log" in text_of(page)
    assert figures_of(page)["Accuracy, held out"]
    assert not page.exception


def test_a_profile_run_leads_to_its_profile(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.profiled)
    assert "The profile is ready" in text_of(page)
    button(page, "Open profile").click().run()
    assert param(page, "id") == str(seeded.profile)
    assert figures_of(page)["Forward"][0] == "10.2 ms"


def test_its_plan_is_one_click_away(seeded: seed.Seeded, open_page: Open) -> None:
    page = button(open_page(Page.RUN, id=seeded.succeeded), "Open plan").click().run()
    assert page.title[0].value.startswith("vgg\\_digits on 2")
    assert figures_of(page)["Staleness"][0] == "1 update"


def test_the_page_follows_a_run_to_its_end(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    attempt = seed.running(backend, definition.id, seed.plan_for(backend, profile))
    page = open_page(Page.RUN, id=attempt.run.id)
    assert "running" in text_of(page)
    attempt.logs([(None, 0.0, "all ranks ended")])
    attempt.finish(RunState.SUCCEEDED, RunSummary(accuracy=0.97))
    page.run()
    assert "succeeded" in text_of(page)
    assert "all ranks ended" in page.code[0].value


def busy_run(backend: Backend, seeded: seed.Seeded) -> int:
    """A run of two ranks that had half of their cores."""
    plan = backend.plans.get(seeded.plan)
    run = seed.submit(backend, seeded.definition, plan, "beside others")
    attempt = seed.claim(backend, run)
    seed.train_epoch(backend, attempt, plan, 0)
    use = CoreUse(0, 0, 1.0, 1.0, 1.1, 4.0, 2.0, 2, 3.5)
    summary = RunSummary(
        seconds_per_minibatch=0.05,
        samples_per_second=320.0,
        cores=(use, replace(use, rank=1)),
    )
    attempt.finish(RunState.SUCCEEDED, summary)
    return run.id


def test_shared_cores_are_said_before_how_far_the_prediction_was_off(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    run = busy_run(backend, seeded)
    page = open_page(Page.RUN, id=run)
    (told,) = [each.value for each in page.warning if "Cores were shared" in each.value]
    assert told.startswith("**Cores were shared: 50\u00a0%.**")
    assert "rank 0 50\u00a0%, rank 1 50\u00a0%" in told
    assert "at the share that the ranks had" in told
    found = backend.runs.expected(backend.runs.get(run))
    assert found.at_share is not None
    note = figures_of(page)["Per minibatch"][1]
    wanted = seconds(found.at_share.seconds_per_minibatch)
    assert note == f"predicted {wanted}".replace("\u00a0", " ")
    assert button(page, "Profile again")
    assert "predicted on cores of their own (" in text_of(page)  # of the epoch's timeline


def test_one_click_profiles_again(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=busy_run(backend, seeded))
    before = {run.id for run in backend.runs.list().runs}
    button(page, "Profile again").click().run()
    (new,) = [run for run in backend.runs.list().runs if run.id not in before]
    assert new.spec == backend.runs.get(seeded.profiled).spec
    assert new.origin_id == seeded.profiled


def test_links_that_a_run_did_not_have_are_said(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    """Two machines of the plan, one of the run; while it works and when it has ended."""
    straight = backend.plans.get(seeded.plan)
    apart = Cluster((Level(1, 1e10), Level(2, 1.25e7, 0.02)))
    kept = backend.plans.save(seeded.profile, apart, straight.prediction)
    attempt = seed.running(backend, seeded.definition, kept)
    words = "for 2 machines with links of 12.5 MB/s and 20.0 ms between them"
    for _ in range(2):
        page = open_page(Page.RUN, id=attempt.run.id)
        assert words in text_of(page).replace("\u00a0", " ")
        assert not page.exception
        if not backend.runs.get(attempt.run.id).state.is_final:
            attempt.finish(RunState.SUCCEEDED, RunSummary())
    others = text_of(open_page(Page.RUN, id=seeded.succeeded))
    assert "machines with links" not in others


def test_on_a_quiet_machine_nothing_is_said_of_cores(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.succeeded)
    assert "Cores were shared" not in text_of(page)
    assert "on cores of their own" not in text_of(page)
    assert not [each for each in page.button if each.label == "Profile again"]


def test_a_slower_run_of_the_same_plan_is_said(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    last = backend.runs.get(seeded.succeeded)
    assert "last run of" not in text_of(open_page(Page.RUN, id=last.id))
    attempt = seed.claim(backend, backend.runs.retry(last.id))
    seed.train_epoch(backend, attempt, backend.plans.get(seeded.plan), 0)
    attempt.finish(RunState.SUCCEEDED, replace(last.summary, samples_per_second=1000.0))
    (again,) = backend.runs.list(limit=1).runs
    said = text_of(open_page(Page.RUN, id=again.id)).replace("\u00a0", " ")
    assert "Worse than the last run of this plan:** throughput 1,000/s, 24 % slower" in said
    assert "Loss 0.1 as before" in said
    document = run_document(backend, again)["beside_last"]
    assert document["run_id"] == last.id
    assert [figure["name"] for figure in document["figures"]] == ["throughput", "loss", "accuracy"]
