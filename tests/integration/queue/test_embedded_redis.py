"""The embedded Redis: real, private, shared, and gone when it is told to go."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from backend.queue.client import redis_client
from backend.queue.embedded import EmbeddedRedis, RedisNotStarted
from backend.settings import MAX_SOCKET_BYTES, Settings


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=home)


@pytest.fixture
def server(settings: Settings) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(settings)
    yield server
    server.stop()


def test_it_starts_once_and_is_taken_as_it_is(settings: Settings, server: EmbeddedRedis):
    assert not server.is_up()
    assert server.start()
    pid = server.pid()
    assert server.is_up()
    assert not EmbeddedRedis(settings).start()
    assert EmbeddedRedis(settings).pid() == pid


def test_those_who_start_it_at_once_get_one_server(settings: Settings, server: EmbeddedRedis):
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda _: EmbeddedRedis(settings).start(), range(4)))
    assert sorted(started) == [False, False, False, True]


def test_it_is_gone_after_stop(settings: Settings, server: EmbeddedRedis):
    server.start()
    process = psutil.Process(server.pid())
    EmbeddedRedis(settings).stop()
    assert not server.is_up()
    assert server.pid() is None
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    server.stop()


def test_what_it_holds_outlives_it(settings: Settings, server: EmbeddedRedis):
    server.start()
    with redis_client(settings) as client:
        client.lpush("list", "kept")
    server.stop()
    server.start()
    with redis_client(settings) as client:
        assert client.lrange("list", 0, -1) == [b"kept"]


def test_what_it_holds_outlives_a_kill(settings: Settings, server: EmbeddedRedis):
    server.start()
    with redis_client(settings) as client:
        client.lpush("list", "kept")
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    psutil.Process(pid).wait()
    assert not server.is_up()
    assert server.start()
    with redis_client(settings) as client:
        assert client.lrange("list", 0, -1) == [b"kept"]


def test_ones_own_redis_is_never_stopped(settings: Settings, server: EmbeddedRedis):
    server.start()
    own = f"redis+socket://{settings.redis_socket}?virtual_host=0"
    other = EmbeddedRedis(Settings(home=settings.home / "other", redis_url=own))
    assert not other.is_up()
    other.stop()
    assert server.is_up()


def test_only_the_owner_can_talk_to_it(settings: Settings, server: EmbeddedRedis):
    server.start()
    assert stat.S_IMODE(settings.redis_socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.redis_socket.parent.stat().st_mode) == 0o700
    with redis_client(settings) as client:
        assert client.config_get("port")["port"] == "0"
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"


def test_it_survives_the_interrupt_and_the_death_of_its_starter(
    settings: Settings, server: EmbeddedRedis
):
    code = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from backend.settings import Settings; "
        "from backend.queue.embedded import EmbeddedRedis; "
        "EmbeddedRedis(Settings()).start(); os.killpg(0, signal.SIGINT); signal.pause()"
    )
    starter = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, check=False, capture_output=True
    )
    assert starter.returncode != 0
    assert server.is_up()
    pid = server.pid()
    assert pid is not None
    assert os.getsid(pid) == pid
    assert not server.start()


def test_a_home_that_is_too_deep_for_a_socket_works_too(tmp_path: Path):
    settings = Settings(home=tmp_path / ("deep" * 30))
    assert len(os.fsencode(settings.redis_socket)) < MAX_SOCKET_BYTES
    assert settings.redis_socket != Settings(home=tmp_path / ("deep" * 31)).redis_socket
    server = EmbeddedRedis(settings)
    try:
        assert server.start()
        assert server.is_up()
    finally:
        server.stop()
        settings.redis_socket.parent.rmdir()


def test_a_server_that_cannot_start_says_why(settings: Settings, server: EmbeddedRedis):
    folder = settings.redis_folder / "appendonly.aof"
    folder.mkdir(parents=True)
    with pytest.raises(RedisNotStarted, match="append-only file: Is a directory") as caught:
        server.start()
    assert "redis.log" in caught.value.advice
    assert server.pid() is None


def test_a_process_that_inherited_the_pid_is_left_alone(settings: Settings, server: EmbeddedRedis):
    settings.redis_folder.mkdir(parents=True)
    (settings.redis_folder / "redis.pid").write_text(f"{os.getpid()} 1.0")
    assert server.pid() is None
    server.stop()
    assert not (settings.redis_folder / "redis.pid").exists()
