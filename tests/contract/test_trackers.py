"""Every tracker of the catalog has a followed run once: all points, parameters and its end."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.comparison.runs import differing
from backend.errors import InvalidInput, NotFound
from backend.runs.attempts.fence import Fence
from backend.runs.events import Metrics
from backend.runs.history.followed import Followed, Following
from backend.runs.request.spec import ImportedSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.services.runs.following import MOST_TRIES
from backend.settings import Settings
from backend.trackers.catalog import CATALOG
from tests.app import seed
from tests.contract.tracker_members import ENDS, READERS, There
from tests.migrated import migrated
from tests.mlflow_server import mlflow_server

BATCH = 4
T0 = 1_790_000_000.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as url:
        yield url


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions are small: several are sent of a short run."""
    monkeypatch.setattr("backend.services.runs.following.BATCH", BATCH)


def addresses(server: str) -> dict[str, str]:
    return {
        "tensorboard": "tensorboard",
        "mlflow": f"mlflow+{server}?experiment=Digits",
        "wandb": "wandb+offline:///digits",
    }


def following(home: Path, trackers: str, **more: str) -> Backend:
    settings = Settings(home=home, node="here", trackers=trackers, **more)
    migrated(settings)
    return connect(settings)


@pytest.fixture(params=CATALOG)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(name: str, request: pytest.FixtureRequest) -> str:
    """MLflow's server is started for itself alone."""
    return request.getfixturevalue("server") if name == "mlflow" else ""


@pytest.fixture
def backend(home: Path, name: str, url: str) -> Iterator[Backend]:
    backend = following(home, addresses(url)[name])
    yield backend
    backend.close()


def begun(backend: Backend) -> Attempt:
    """A training that works."""
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    run = seed.submit(backend, definition.id, seed.plan_for(backend, profile))
    return seed.claim(backend, run)


def told(attempt: Attempt, name: str, first: int, last: int, times: float = 1.0) -> None:
    steps = tuple(range(first, last))
    values = tuple(times * (step + 0.5) for step in steps)
    attempt.metrics(Metrics(name, steps, values, tuple(T0 + step for step in steps)))


def points(name: str, first: int, last: int, times: float = 1.0) -> list[tuple[str, int, float]]:
    return [(name, step, times * (step + 0.5)) for step in range(first, last)]


def turn(backend: Backend, name: str, run: Run) -> Followed:
    """Look after the run now, however soon after the last time."""
    store = backend.following._stores.followed
    now = store.get(run.id, name)
    store.change(now, replace(now, due=0.0))
    backend.following.turn(name)
    return store.get(run.id, name)


def there(backend: Backend, followed: Followed, url: str) -> There:
    return READERS[followed.tracker](followed, backend.settings.home, url)


def test_every_member_has_a_reader() -> None:
    assert set(READERS) == set(CATALOG) == set(ENDS)


def test_a_run_is_followed_to_its_end(backend: Backend, name: str, url: str) -> None:
    attempt = begun(backend)
    told(attempt, "loss", 0, BATCH + 5)
    turn(backend, name, attempt.run)
    told(attempt, "held-out loss", 0, 2)
    turn(backend, name, attempt.run)
    told(attempt, "loss", BATCH + 5, BATCH + 7)
    attempt.finish(RunState.SUCCEEDED, RunSummary(epochs=1))
    while (now := turn(backend, name, attempt.run)).state is Following.ON:
        assert not now.error
    assert now.state is Following.DONE
    assert now.sent == BATCH + 9
    found = there(backend, now, url)
    assert found.points == sorted(points("loss", 0, BATCH + 7) + points("held-out loss", 0, 2))
    assert found.parameters["model"].startswith("vgg_digits")
    assert found.parameters["plan.schedule"] == "pipedream"
    assert found.parameters["optimizer.name"] == "momentum"
    assert found.ended == ENDS[name]


def test_what_was_not_confirmed_is_sent_again_and_there_once(
    backend: Backend, name: str, url: str
) -> None:
    attempt = begun(backend)
    told(attempt, "loss", 0, 3)
    first = turn(backend, name, attempt.run)
    told(attempt, "loss", 3, 6)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    sent = turn(backend, name, attempt.run)
    assert sent.state is Following.DONE
    store = backend.following._stores.followed
    assert store.change(sent, first)  # as if the process had ended before it could store that
    again = turn(backend, name, attempt.run)
    assert again.sent == 6
    assert there(backend, again, url).points == points("loss", 0, 6)


def test_a_run_that_is_stopped_gets_no_more_until_it_is_followed_again(
    backend: Backend, name: str, url: str
) -> None:
    attempt = begun(backend)
    told(attempt, "loss", 0, 2)
    turn(backend, name, attempt.run)
    assert backend.trackers.stop(attempt.run.id, name).state is Following.OFF
    told(attempt, "loss", 2, 4)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    assert turn(backend, name, attempt.run).sent <= 2
    assert backend.trackers.follow(attempt.run.id, name).state is Following.ON
    assert turn(backend, name, attempt.run).state is Following.DONE
    (now,) = backend.trackers.list(attempt.run.id)
    assert there(backend, now, url).points == points("loss", 0, 4)


def test_tensorboard_leaves_out_what_is_made_again(home: Path) -> None:
    """An attempt that goes on from step 3 makes the points behind it once more."""
    backend = following(home, "tensorboard")
    attempt = begun(backend)
    told(attempt, "loss", 0, 6)
    turn(backend, "tensorboard", attempt.run)
    fence: Fence = attempt.fence
    backend.runs.metrics.forget(fence, 3)
    told(attempt, "loss", 3, 7, times=2.0)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    now = turn(backend, "tensorboard", attempt.run)
    expected = points("loss", 0, 3) + points("loss", 3, 7, times=2.0)
    assert there(backend, now, "").points == expected
    backend.close()


def test_mlflow_knows_where_the_run_is_of_and_gives_its_page(home: Path, server: str) -> None:
    from mlflow.tracking import MlflowClient

    backend = following(home, addresses(server)["mlflow"], public_url="https://flow.example")
    attempt = begun(backend)
    told(attempt, "loss", 0, 1)
    now = turn(backend, "mlflow", attempt.run)
    run = MlflowClient(server).get_run(now.place.remote)
    assert run.info.run_name == attempt.run.name
    assert run.info.status == "RUNNING"
    assert run.data.tags["stageflow.url"] == f"https://flow.example/run?id={attempt.run.id}"
    assert (
        now.place.url == f"{server}/#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
    )
    (metric,) = MlflowClient(server).get_metric_history(run.info.run_id, "loss")
    assert metric.timestamp == 1000 * T0
    attempt.finish(RunState.CANCELLED, RunSummary())
    turn(backend, "mlflow", attempt.run)
    assert MlflowClient(server).get_run(now.place.remote).info.status == "KILLED"
    backend.close()


def test_a_run_that_was_deleted_in_mlflow_becomes_a_new_one_when_asked(
    home: Path, server: str
) -> None:
    from mlflow.tracking import MlflowClient

    backend = following(home, addresses(server)["mlflow"])
    attempt = begun(backend)
    told(attempt, "loss", 0, 2)
    before = turn(backend, "mlflow", attempt.run)
    MlflowClient(server).delete_run(before.place.remote)
    told(attempt, "loss", 2, 3)
    gone = turn(backend, "mlflow", attempt.run)
    assert gone.state is Following.FAILED
    assert "deleted" in gone.error
    backend.trackers.follow(attempt.run.id, "mlflow")
    now = turn(backend, "mlflow", attempt.run)
    assert now.place.remote != before.place.remote
    assert there(backend, now, server).points == points("loss", 0, 3)
    backend.close()


def test_a_server_that_is_away_is_asked_again_with_a_bound(home: Path) -> None:
    backend = following(home, "mlflow+http://127.0.0.1:9")
    attempt = begun(backend)
    told(attempt, "loss", 0, 1)
    for tries in range(1, MOST_TRIES):
        now = turn(backend, "mlflow", attempt.run)
        assert (now.state, now.tries) == (Following.ON, tries)
        assert "MLflow does not answer" in now.error
    now = turn(backend, "mlflow", attempt.run)
    assert now.state is Following.FAILED
    assert f"given up after {MOST_TRIES} tries" in now.error
    attempt.finish(RunState.SUCCEEDED, RunSummary())  # nothing of it reaches the run
    assert backend.runs.get(attempt.run.id).state is RunState.SUCCEEDED
    backend.close()


def test_a_package_that_is_missing_is_named_with_its_command(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.trackers.tracker.find_spec", lambda _: None)
    backend = following(home, addresses("http://127.0.0.1:9")[name])
    attempt = begun(backend)
    told(attempt, "loss", 0, 1)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    now = turn(backend, name, attempt.run)
    assert now.state is Following.FAILED
    assert f"pip install 'stageflow[{name}]'" in now.advice
    backend.close()


def test_a_person_may_choose_where_a_run_is_followed(home: Path) -> None:
    backend = following(home, "tensorboard wandb+offline:///p")
    run = begun(backend).run
    everywhere = backend.runs.submit(run.spec)
    nowhere = backend.runs.submit(replace(run.spec, trackers=()))
    one = backend.runs.submit(replace(run.spec, trackers=("wandb",)))
    names = [[f.tracker for f in backend.trackers.list(r.id)] for r in (everywhere, nowhere, one)]
    assert names == [["tensorboard", "wandb"], [], ["wandb"]]
    assert [f.tracker for f in backend.trackers.list(backend.runs.submit(nowhere.spec).id)] == []
    with pytest.raises(InvalidInput, match="no tracker 'mlflow' is set up"):
        backend.runs.submit(replace(run.spec, trackers=("mlflow",)))
    backend.close()


def test_only_runs_that_are_chosen_are_followed_where_settings_say_so(home: Path) -> None:
    backend = following(home, "tensorboard", track="chosen")
    run = begun(backend).run
    assert backend.trackers.list(run.id) == []
    chosen = backend.runs.submit(replace(run.spec, trackers=("tensorboard",)))
    assert [f.tracker for f in backend.trackers.list(chosen.id)] == ["tensorboard"]
    backend.close()


class Refusing(BaseHTTPRequestHandler):
    """A server that lets nobody in."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_wrong_password_is_given_up_at_once_and_told_to_nobody(home: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    backend = following(home, f"mlflow+http://ann:hush-hush@127.0.0.1:{server.server_port}")
    attempt = begun(backend)
    now = turn(backend, "mlflow", attempt.run)
    assert now.state is Following.FAILED
    assert now.error == "MLflow refuses the user, password or token"
    assert "hush" not in f"{now}{backend.trackers.known['mlflow'].where}"
    server.shutdown()
    server.server_close()
    backend.close()


def test_a_run_of_others_is_imported_from_mlflow(home: Path, server: str) -> None:
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient(server)
    experiment = client.create_experiment("Elsewhere")
    theirs = client.create_run(experiment, start_time=100_000, run_name="theirs").info.run_id
    client.log_param(theirs, "optimizer.learning_rate", "0.1")
    client.set_tag(theirs, "team", "vision")
    losses = [Metric("train_loss", 1 / (n + 1), 100_000 + n, n) for n in range(5)]
    client.log_batch(theirs, metrics=[*losses, Metric("val_acc", 0.5, 100_004, 4)])
    backend = following(home, addresses(server)["mlflow"])
    own = begun(backend).run
    with pytest.raises(InvalidInput, match="goes on"):
        backend.imports.bring(theirs, own.spec.definition_id, {})
    client.set_terminated(theirs, "KILLED", end_time=160_000)
    page = f"{server}/#/experiments/{experiment}/runs/{theirs}"
    run = backend.imports.bring(page, own.spec.definition_id, {"val_acc": "top1"})
    assert (run.name, run.state, run.tags) == ("theirs", RunState.CANCELLED, ("team=vision",))
    assert isinstance(run.spec, ImportedSpec)
    assert run.spec.url == page
    found = [(p.step, p.value, p.time) for p in backend.runs.metrics.list(run.id, "loss")]
    assert found == [(n, 1 / (n + 1), 100.0 + n / 1000) for n in range(5)]
    assert run.summary.metrics == {"top1": 0.5}
    assert differing([own, run])["optimizer.learning_rate"] == ("0.01", "0.1")
    for nothing in ("0123456789abcdef", "no run at all"):
        with pytest.raises((NotFound, InvalidInput)):
            backend.imports.bring(nothing, own.spec.definition_id, {})
    backend.close()
