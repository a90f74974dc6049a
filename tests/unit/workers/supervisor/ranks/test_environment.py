"""A rank's environment holds what it needs and no credentials."""

from pathlib import Path

import pytest

from workers.supervisor.ranks.environment import rank_environment
from workers.supervisor.ranks.place import Place

TWO = Place((0, 1), (0, 1), 2950)


@pytest.fixture
def outer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEFLOW_DATABASE_URL", "postgresql://user:secret@db/x")
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("HOME", "/home/someone")


@pytest.mark.usefixtures("outer")
def test_no_secret_is_handed_on():
    env = rank_environment(0, TWO, 2, Path("/runs/7/attempt-1"))
    assert not [name for name in env if name.startswith("STAGEFLOW_")]
    assert "secret" not in " ".join(env.values())


@pytest.mark.usefixtures("outer")
def test_it_names_the_rank_as_torchrun_does():
    env = rank_environment(1, TWO, 2, Path("/runs/7/attempt-1"))
    assert (env["RANK"], env["WORLD_SIZE"]) == ("1", "2")
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("127.0.0.1", "2950")
    assert env["HOME"] == "/runs/7/attempt-1"
    assert env["GLOO_SOCKET_IFNAME"] == "lo"


@pytest.mark.usefixtures("outer")
def test_in_a_network_of_its_own_there_is_the_loopback_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth0")
    env = rank_environment(0, TWO, 2, Path("/work"), wrapped=True)
    assert (env["GLOO_SOCKET_IFNAME"], env["NCCL_SOCKET_IFNAME"]) == ("lo", "lo")


def test_temporary_files_stay_in_the_work_folder_where_tmp_is_not_private():
    assert rank_environment(0, TWO, 2, Path("/work"))["TMPDIR"] == "/work"
    assert "TMPDIR" not in rank_environment(0, TWO, 2, Path("/work"), wrapped=True)


GPUS = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")


@pytest.mark.parametrize(
    ("rank", "gpus", "visible"),
    [(0, (), ""), (1, GPUS, "GPU-b"), (0, GPUS, "GPU-d"), (3, GPUS, "GPU-c")],
)
def test_a_rank_sees_its_own_gpu_alone(rank: int, gpus: tuple[str, ...], visible: str):
    env = rank_environment(rank, Place((0, 1, 2, 3), (3, 1, 0, 2), 2950), 4, Path("/x"), gpus)
    assert env["CUDA_VISIBLE_DEVICES"] == visible


def test_on_several_hosts_it_names_its_host_and_its_own_device():
    place = Place((1, 3), (0, 1), 2950, "10.0.0.1", host=1, hosts=2, interface="eth7")
    env = rank_environment(1, place, 4, Path("/x"), GPUS[:2], wrapped=True)
    assert (env["RANK"], env["LOCAL_RANK"], env["CUDA_VISIBLE_DEVICES"]) == ("3", "1", "GPU-b")
    assert (env["GROUP_RANK"], env["GROUP_WORLD_SIZE"]) == ("1", "2")
    assert (env["MASTER_ADDR"], env["GLOO_SOCKET_IFNAME"]) == ("10.0.0.1", "eth7")
