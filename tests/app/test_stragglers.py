"""A rank that is slower than its plan is named by page, command, REST API and export, with the
cluster as it was measured."""

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.client import ApiProblem, Client
from app.exports.run_document import run_document
from app.session.state import Page
from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from tests.api.conftest import serving
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of

SLOWED = 1.6
EPOCHS = 3  # of 24 minibatches


def a_run(backend: Backend, seeded: seed.Seeded, slowed: float, epochs: int = EPOCHS) -> int:
    plan = backend.plans.get(seeded.plan)
    run = seed.submit(backend, seeded.definition, plan, "with a slow rank")
    attempt = seed.claim(backend, run)
    for epoch in range(epochs):
        seed.train_epoch(backend, attempt, plan, epoch, slowed)
    attempt.finish(RunState.SUCCEEDED, RunSummary(seconds_per_minibatch=0.02))
    return run.id


def test_the_page_names_the_rank_and_keeps_the_cluster(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    run = a_run(backend, seeded, SLOWED)
    page = open_page(Page.RUN, id=run)
    (told,) = [each.value for each in page.warning if "as long as planned" in each.value]
    assert "on device 1 computes 1.6" in told
    assert "device 0" not in told
    assert "over the last 72\u00a0minibatches" in told
    (link,) = [each for each in page.get("page_link") if "measured speeds" in each.proto.label]
    assert "speed" in link.proto.query_string
    (name,) = [box for box in page.text_input if box.label == "Name" and "room" in box.placeholder]
    name.set_value("as measured")
    button(page, "Save this cluster").click().run()
    assert not page.exception
    kept = backend.clusters.find("as measured")
    assert kept.at(0).speed == backend.plans.get(seeded.plan).cluster.at(0).speed
    assert kept.at(1).speed == pytest.approx(1 / (0.95 * SLOWED), rel=0.06)


@pytest.mark.parametrize(("slowed", "epochs"), [(1.0, EPOCHS), (SLOWED, 2)])
def test_nothing_is_said_of_ranks_as_planned_or_of_few_minibatches(
    backend: Backend, seeded: seed.Seeded, open_page: Open, slowed: float, epochs: int
) -> None:
    page = open_page(Page.RUN, id=a_run(backend, seeded, slowed, epochs))
    assert "as long as planned" not in text_of(page)


def test_commands_and_exports_say_the_same(backend: Backend, seeded: seed.Seeded) -> None:
    run = a_run(backend, seeded, SLOWED)
    shown = CliRunner().invoke(app, ["show", str(run)], env={"COLUMNS": "200"})
    assert "on device 1 computes 1.6" in shown.output
    assert f"--cluster run:{run}" in shown.output
    found = backend.runs.paces(backend.runs.get(run))
    assert found is not None
    assert [pace.rank for pace in found.stragglers] == [1]
    document = run_document(backend, backend.runs.get(run))["paces"]
    assert [pace["slowdown"] for pace in document["ranks"]] == [p.slowdown for p in found.ranks]
    saved = CliRunner().invoke(app, ["clusters", "save", "slow one", f"run:{run}"])
    assert saved.exit_code == 0, saved.output
    assert backend.clusters.find("slow one") == found.cluster


def test_the_client_has_the_figures_and_null_where_there_are_none(
    backend: Backend, seeded: seed.Seeded
) -> None:
    run = a_run(backend, seeded, SLOWED)
    with serving() as url:
        client = Client(url)
        assert client.paces(run) == backend.runs.paces(backend.runs.get(run))
        assert client.paces(seeded.queued) is None
        asked = {"planner": "best", "schedule": "", "target": 0.9}
        found = client.propose(seeded.profile, "local:2", **asked)
        assert run in found[0]["to_target"]["learnt"]["runs"]
        with pytest.raises(ApiProblem, match="two targets"):
            client.propose(seeded.profile, "local:2", **asked, target_loss=0.3)


def test_a_run_that_tells_no_speeds_is_refused(backend: Backend, seeded: seed.Seeded) -> None:
    asked = CliRunner().invoke(app, ["clusters", "save", "none", f"run:{seeded.queued}"])
    assert isinstance(asked.exception, InvalidInput)
    assert "does not tell how fast its devices are" in str(asked.exception)
