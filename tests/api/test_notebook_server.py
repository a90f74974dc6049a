"""A notebook with a server: plans equal to its own, runs submitted, followed, compared."""

import time
from pathlib import Path
from threading import Thread

import pytest

import stageflow
from app.notebook.comparison import VEGA_LITE
from backend.cluster.document import write_cluster
from backend.cluster.presets import local
from backend.codec import to_plain
from backend.prediction.prediction import Prediction
from backend.profiles.document import write_profile
from backend.runs.request.spec import TrainSpec
from backend.runs.states import RunState
from tests.api.conftest import Served
from tests.app import seed


def test_plans_are_those_of_the_server_to_the_digit(served: Served) -> None:
    server = stageflow.connect(served.url)
    plan = stageflow.plan(server.profile(served.seeded.profile), local(2), microbatches=8)
    asked = {"schedule": "", "batch": 8}
    theirs = server.client.propose(served.seeded.profile, write_cluster(local(2)), **asked)
    ours = [to_plain(Prediction, each.prediction) for each in (plan, *plan.alternatives)]
    assert ours == [each["prediction"] for each in theirs]


def test_a_plan_is_submitted_followed_and_compared(served: Served) -> None:
    server = stageflow.connect(served.url)
    kept = server.profile(served.seeded.profile)
    plan = stageflow.plan(kept, local(2), planner="straight", schedule="gpipe")
    run = server.submit(plan, "from a notebook", epochs=3, optimizer={"name": "adam"})
    assert isinstance(run.run.spec, TrainSpec)
    assert (run.run.spec.plan, run.run.spec.epochs) == (plan.plan, 3)
    assert run.run.spec.optimizer.name == "adam"
    lion = {"optimizer": "lion", "state_precision": "bfloat16-masters"}
    state = stageflow.plan(kept, local(2), planner="straight", **lion)
    planned = server.submit(state).run.spec
    assert isinstance(planned, TrainSpec)
    assert (planned.optimizer.name, planned.state_precision) == ("lion", "bfloat16-masters")
    assert planned.precision == "bfloat16"
    Thread(target=lambda: (time.sleep(0.2), run.cancel())).start()
    ended = run.follow(pause=0.05)
    assert ended.run.state is RunState.CANCELLED
    done = server.run(served.seeded.succeeded)
    compared = server.compare(done, ended.id)
    assert [each.id for each in compared.runs] == [done.id, ended.id]
    assert "epochs" in compared.differing()
    html = compared._repr_html_()
    assert "cancelled" in html
    assert "optimizer.name" in html
    curves = compared.curves("loss", smoothing=0.5)
    shown = curves._repr_mimebundle_()
    points = shown[VEGA_LITE]["data"]["values"]
    assert [each["value"] for each in points] == [each.value for each in done.metric("loss")]
    assert shown[VEGA_LITE]["background"] == "transparent"
    assert "succeeded" in done._repr_html_()
    failed = next(each for each in server.runs(states=["failed"]))
    assert failed.run.error.message in failed._repr_html_()
    assert "update 95 loss" in done.log()


def test_a_profile_of_the_notebook_is_kept_with_its_definition(
    served: Served, tmp_path: Path
) -> None:
    server = stageflow.connect(served.url)
    source = tmp_path / "mine.py"
    source.write_text("def model():\n    pass\n\n\ndef example(batch):\n    pass\n")
    file = tmp_path / "mine.json"
    file.write_bytes(write_profile(seed.a_profile(2)))
    profile = stageflow.read_profile(file)
    plan = stageflow.plan(profile, 2, planner="straight")
    with pytest.raises(stageflow.StageflowError, match="is not kept on the server"):
        server.submit(plan)
    kept = server.keep(profile, source)
    assert server.profile(kept.id).profile == profile.profile
    with pytest.raises(stageflow.StageflowError, match="no runs to compare"):
        server.compare()


def test_a_server_that_is_not_there_is_said_at_once() -> None:
    with pytest.raises(stageflow.StageflowError, match=r"no answer from 127\.0\.0\.1:9"):
        stageflow.connect("http://127.0.0.1:9")
