"""A published run reaches its node's queue; a Redis that is gone loses no run."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.definitions.definition import Definition
from backend.queue.client import PUBLISH_SECONDS, CeleryQueue, celery_app, ping, redis_client
from backend.queue.embedded import EmbeddedRedis
from backend.queue.messages import RUN, QueueUnreachable, queue_name
from backend.runs.request.spec import ProfileSpec
from backend.runs.states import RunState
from backend.settings import Settings
from tests.migrated import migrated


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=home, node="here")


@pytest.fixture
def server(settings: Settings) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(settings)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def backend(settings: Settings) -> Iterator[Backend]:
    migrated(settings)
    backend = connect(settings)
    yield backend
    backend.close()


@pytest.fixture
def definition(backend: Backend) -> Definition:
    return backend.definitions.add("tiny.py", b"def model(): ...\n")


def messages(settings: Settings, node: str) -> list[dict]:
    with redis_client(settings) as client:
        return [json.loads(each) for each in client.lrange(f"stageflow:{queue_name(node)}", 0, -1)]


def test_a_submitted_run_reaches_the_queue_of_the_living_node(
    settings: Settings, server: EmbeddedRedis, backend: Backend, definition: Definition
):
    backend.nodes.beat("elsewhere")
    run = backend.runs.submit(ProfileSpec(definition.id))
    (message,) = messages(settings, "elsewhere")
    assert message["headers"]["task"] == RUN
    assert message["headers"]["argsrepr"] == f"[{run.id}]"
    assert not messages(settings, "here")
    assert backend.runs.why_waiting(run) is None


def test_without_a_living_node_the_own_one_is_woken(
    settings: Settings, server: EmbeddedRedis, backend: Backend, definition: Definition
):
    run = backend.runs.submit(ProfileSpec(definition.id))
    assert len(messages(settings, "here")) == 1
    assert "No node agent is alive" in (backend.runs.why_waiting(run) or "")


def test_a_worker_receives_the_run(settings: Settings, server: EmbeddedRedis):
    CeleryQueue(settings).publish(7, "here")
    app = celery_app(settings)
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue(queue_name("here"))
        message = queue.get(timeout=120)
        message.ack()
        queue.close()
    assert message.payload[0] == [7]


def test_a_stopped_redis_leaves_the_run_queued_and_a_new_one_wakes_again(
    settings: Settings, server: EmbeddedRedis, backend: Backend, definition: Definition
):
    backend.runs.submit(ProfileSpec(definition.id))
    server.stop()
    assert not ping(settings)
    late = backend.runs.submit(ProfileSpec(definition.id))
    assert backend.runs.get(late.id).state is RunState.QUEUED
    assert late.id in backend.dispatch.waiting_for("here")
    assert str(settings.redis_socket) in (backend.runs.why_waiting(late) or "")
    server.start()
    assert ping(settings)
    backend.runs.submit(ProfileSpec(definition.id))
    assert len(messages(settings, "here")) == 2


@pytest.mark.parametrize("odd", ["a b", "50%20", "what?", "#1", "a;b", "ü@x:1"])
def test_any_home_will_do(home: Path, odd: str):
    settings = Settings(home=home / odd, node="here")
    server = EmbeddedRedis(settings)
    server.start()
    try:
        migrated(settings)
        with closing(connect(settings)) as backend:
            definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
            backend.runs.submit(ProfileSpec(definition.id))
        assert len(messages(settings, "here")) == 1
        assert (settings.home / "stageflow.db").stat().st_size > 0
    finally:
        server.stop()


def test_a_redis_that_is_not_there_is_named_without_its_password(home: Path):
    queue = CeleryQueue(Settings(home=home, redis_url="redis://:secret@127.0.0.1:1/0"))
    with pytest.raises(QueueUnreachable, match=r"127\.0\.0\.1:1") as caught:
        queue.publish(1, "here")
    assert "secret" not in str(caught.value)
    assert "STAGEFLOW_REDIS_URL" in caught.value.advice


def test_a_redis_that_never_answers_is_given_up(home: Path):
    """A socket that takes the connection and stays silent; the test's own limit is 300 s."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        queue = CeleryQueue(Settings(home=home, redis_url=url))
        with pytest.raises(QueueUnreachable):
            queue.publish(1, "here")
    assert PUBLISH_SECONDS <= 2.0


def test_agent_and_client_agree_on_what_keeps_runs_safe(settings: Settings):
    conf = celery_app(settings).conf
    assert not conf.task_acks_late
    assert conf.task_ignore_result
    assert conf.worker_prefetch_multiplier == 1
    assert conf.worker_disable_prefetch
    assert conf.accept_content == ["json"]
    assert conf.broker_connection_max_retries is None
    assert conf.broker_transport_options["visibility_timeout"] > 24 * 3600
