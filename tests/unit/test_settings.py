"""The environment as one typed value."""

import os
from pathlib import Path

import pytest

from backend.errors import InvalidInput
from backend.settings import MAX_SOCKET_BYTES, Settings, load_settings


def test_everything_lies_in_home_by_default(home: Path):
    settings = load_settings()
    assert settings.sql_url == f"sqlite:///{home}/stageflow.db"
    assert settings.artifacts_folder == home / "artifacts"
    assert settings.run_folder(3, 2) == home / "runs" / "3" / "attempt-2"
    assert settings.uses_embedded_redis
    assert str(settings.redis_socket) in settings.broker_url


def test_home_is_absolute_whatever_was_given(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAGEFLOW_HOME", "here")
    assert load_settings().home == Path.cwd() / "here"
    monkeypatch.setenv("STAGEFLOW_HOME", "~/there")
    assert load_settings().home == Path.home() / "there"


def test_what_hosts_share_may_lie_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAGEFLOW_NODE", "a/b")
    here = load_settings()
    assert here.shared_folder == home
    monkeypatch.setenv("STAGEFLOW_SHARED", "~/share")
    there, share = load_settings(), Path.home() / "share"
    assert there.artifacts_folder == share / "artifacts"
    assert there.checkpoints_folder == share / "checkpoints"
    assert there.spool_folder == share / "spool" / "a%2Fb"
    assert there.run_folder(3, 2) == here.run_folder(3, 2)
    assert there.sql_url == here.sql_url


@pytest.mark.parametrize("depth", range(60, 160, 7))
def test_the_socket_is_always_short_enough(depth: int):
    socket = Settings(home=Path("/" + "d" * depth)).redis_socket
    assert len(os.fsencode(socket)) < MAX_SOCKET_BYTES


def test_ones_own_servers_are_used_and_shown_without_passwords(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("STAGEFLOW_REDIS_URL", "redis://:secret@redis.example:7000/1")
    monkeypatch.setenv("STAGEFLOW_DATABASE_URL", "postgresql://db.example/stageflow")
    settings = load_settings()
    assert not settings.uses_embedded_redis
    assert settings.broker_place == "redis.example:7000"
    assert settings.sql_url == "postgresql://db.example/stageflow"


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "many"), ("PORT", "70000"), ("LEASE", "0"), ("NODE", ""), ("SANDBOX", "strong")],
)
def test_a_faulty_variable_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
):
    monkeypatch.setenv(f"STAGEFLOW_{name}", value)
    with pytest.raises(InvalidInput, match=f"STAGEFLOW_{name}={value}") as caught:
        load_settings()
    assert name in caught.value.advice


def test_settings_follow_the_environment(home: Path, monkeypatch: pytest.MonkeyPatch):
    first = load_settings()
    assert load_settings() is first
    monkeypatch.setenv("STAGEFLOW_PORT", "9001")
    assert load_settings().port == 9001
    monkeypatch.delenv("STAGEFLOW_PORT")
    assert load_settings() == first


def test_links_lead_to_where_people_reach_the_dashboard():
    assert Settings(host="127.0.0.1", port=9000).address == "http://127.0.0.1:9000"
    assert Settings(host="::1", port=9000).address == "http://[::1]:9000"
    assert Settings(public_url="https://flow.example/").address == "https://flow.example"


def test_the_user_owns_what_is_submitted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAGEFLOW_USER", "ada")
    assert load_settings().user == "ada"


def test_a_folder_of_files_gives_what_no_variable_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stageflow_database_url").write_text("postgresql://u:p@host/name")
    (tmp_path / "stageflow_node").write_text("from-a-file")
    monkeypatch.setenv("STAGEFLOW_SECRETS", str(tmp_path))
    monkeypatch.setenv("STAGEFLOW_NODE", "from-a-variable")
    settings = load_settings()
    assert settings.database_url == "postgresql://u:p@host/name"
    assert settings.node == "from-a-variable"
    monkeypatch.setenv("STAGEFLOW_SECRETS", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInput, match="no such folder"):
        load_settings()


@pytest.mark.parametrize("word", ["tensorboard:/x", "wandb:/y", "mlflow:5000", "mlflow+ftp://x"])
def test_an_address_of_no_tracker_is_refused_at_the_start(word: str, home: Path, monkeypatch):
    monkeypatch.setenv("STAGEFLOW_TRACKERS", f"mlflow+http://h:5000?experiment=E {word}")
    with pytest.raises(InvalidInput, match="STAGEFLOW_TRACKERS") as caught:
        load_settings()
    assert "mlflow+http://HOST:PORT" in f"{caught.value} {caught.value.advice}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tensorboard mlflow+sqlite:////srv/mlflow.db wandb+offline:///digits",
        "wandb://key@host/entity/project",
        "mlflow+https://ann:secret@host",
    ],
)
def test_addresses_of_trackers_are_taken(text: str, home: Path, monkeypatch):
    monkeypatch.setenv("STAGEFLOW_TRACKERS", text)
    assert load_settings().trackers == text
