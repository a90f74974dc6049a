"""The leader's side of a run on several hosts, with team that a test plays by hand."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import stage_file
from backend.runs.dispatch.placement import Share
from backend.runs.events import Chosen, Heartbeat
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec, TrainSpec
from workers.supervisor.ranks.lines import Lines, PrintedLine
from workers.supervisor.team import leader
from workers.supervisor.team.connection import CHUNK, Connection
from workers.supervisor.team.leader import NodesMissing, Team

SHARES = (Share("a", (0,), (0,)), Share("b", (1, 2), (0, 1)))
JOB = Job(1, 1, "net", ProfileSpec(1), "", "", 3)


class Member:
    """Node b, as its agent speaks."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.place: dict[str, object] = {}
        self.begin: dict[str, int] = {}

    def join(self, secret: str = "") -> None:
        """Be summoned, and come."""

        def summoned(address: str, port: int, told: str) -> None:
            self.connection = Connection.over(socket.create_connection((address, port)))
            self.connection.send(node="b", secret=secret or told)

        assert self._team.gather(summoned, lambda: True)

    def start(self, lines: Lines, job: Job = JOB) -> None:
        self._team.start(lines, job)
        head = self.connection.receive() or {}
        self.place, self.begin = head["place"], head["begin"]


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    team = Team(SHARES, "127.0.0.1", 4711, tmp_path)
    yield team
    team.end()


@pytest.fixture
def member(team: Team) -> Iterator[Member]:
    member = Member(team)
    member.join()
    yield member
    member.connection.close()


def test_a_member_is_told_its_ranks_and_where_all_meet(member: Member) -> None:
    member.start(Lines())
    assert member.place == {
        "ranks": [1, 2],
        "devices": [0, 1],
        "port": 4711,
        "address": "127.0.0.1",
        "host": 1,
        "hosts": 2,
        "interface": "",
        "held": [],
    }


def test_a_checkpoint_to_go_on_from_comes_with_the_place(member: Member, tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint"
    kept.mkdir()
    for stage in (0, 1):
        (kept / f"stage-{stage}.safetensors").write_bytes(bytes([stage]) * 1_000)
    job = replace(JOB, checkpoint=str(kept), epoch=2, samples=64)
    member.start(Lines(), job)
    assert member.begin == {"epoch": 2, "samples": 64, "files": 2}
    for stage in (0, 1):
        assert member.connection.receive() == {"file": f"stage-{stage}.safetensors", "size": 1_000}
        copy = tmp_path / "copy"
        with copy.open("wb") as target:
            member.connection.receive_file(target, 1_000)
        assert copy.read_bytes() == bytes([stage]) * 1_000


PLAN = Plan("even", Partition((Stage(0, 2, (0,)), Stage(2, 4, (1, 2)))), "1f1b-flush", 4, batch=2)


@pytest.mark.parametrize(("own", "stages"), [(True, [1]), (False, [0, 1])])
def test_a_node_gets_the_files_of_its_own_stages_where_the_plan_has_not_changed(
    member: Member, tmp_path: Path, own: bool, stages: list[int]
) -> None:
    """Both pipelines' files: how many there are tells whose weights a pipeline goes on from. The
    replicas of a stage have a file each where they share its state."""
    kept = tmp_path / "checkpoint"
    kept.mkdir()
    for part in product((0, 1), repeat=3):
        (kept / f"host-1-0-8-{stage_file(*part)}").write_bytes(b"x" * part[0])
    spec = TrainSpec(1, PLAN)
    job = replace(JOB, spec=spec, checkpoint=str(kept), own_checkpoint=own)
    member.start(Lines(), job)
    parts = product(stages, (0, 1), (0, 1))
    names = sorted(f"host-1-0-8-{stage_file(*part)}" for part in parts)
    assert member.begin["files"] == len(names)
    for name in names:
        head = member.connection.receive()
        assert head["file"] == name
        with (tmp_path / "copy").open("wb") as target:
            member.connection.receive_file(target, head["size"])


@pytest.mark.parametrize("way", ["to the leader", "to the member"])
def test_a_node_is_not_silent_while_a_file_is_on_its_way(
    member: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Its ranks' own lines wait behind the file."""
    monkeypatch.setattr(leader, "BEAT", 0.0)
    lines, file = Lines(), tmp_path / "checkpoint" / "stage-1"
    file.parent.mkdir()
    file.write_bytes(bytes(3 * CHUNK))
    if way == "to the member":
        member.start(lines, replace(JOB, checkpoint=str(file.parent)))
        head = member.connection.receive()
        with (tmp_path / "copy").open("wb") as target:
            member.connection.receive_file(target, head["size"])
    else:
        member.start(lines)
        with file.open("rb") as data:
            member.connection.send_file(data, 2 * CHUNK, file="x")
    heard: list[PrintedLine] = []
    eventually(lambda: heard.extend(lines.take(0.1)) or {line.rank for line in heard} == {1, 2})
    assert all(line.event == Heartbeat(line.rank) for line in heard)


def test_small_files_say_nothing_of_the_ranks(member: Member, tmp_path: Path) -> None:
    lines = Lines()
    member.start(lines)
    (tmp_path / "source").write_bytes(b"x")
    with (tmp_path / "source").open("rb") as data:
        member.connection.send_file(data, 1, file="x")
    member.connection.send(rank=1, time=3.5, text="hello")
    assert [line.text for line in lines.take(5)] == ["hello"]


def test_what_rank_0_chose_is_passed_on_once_the_files_are_there(
    team: Team, member: Member, tmp_path: Path
) -> None:
    """Not before: what is said then would lie in the middle of a file."""
    kept = tmp_path / "checkpoint"
    kept.mkdir()
    (kept / "stage-0.safetensors").write_bytes(bytes(30_000_000))  # more than the connection holds
    member.start(Lines(), replace(JOB, checkpoint=str(kept)))
    team.choose(Chosen(0, 0, 8))
    head = member.connection.receive()
    with (tmp_path / "copy").open("wb") as target:
        member.connection.receive_file(target, head["size"])
    member.connection.send(rank=1, exit=0)
    eventually(lambda: team.exits())
    team.choose(Chosen(0, 1, 24))
    assert member.connection.receive() == {"epoch": 1, "microbatches": 24}


def test_lines_files_and_exits_arrive(team: Team, member: Member, tmp_path: Path) -> None:
    lines = Lines()
    member.start(lines)
    source = tmp_path / "source"
    source.write_bytes(b"x" * 70_000)
    with source.open("rb") as data:
        member.connection.send_file(data, 70_000, file="../spans-1-0.arrow")
    member.connection.send(rank=1, time=3.5, text="hello")
    member.connection.send(rank=0, time=3.5, text="of another node: not heard")
    for rank in (1, 2):
        member.connection.send(rank=rank, exit=0)
    eventually(lambda: team.exits() == {1: 0, 2: 0})
    assert [(h.rank, h.time, h.text) for h in lines.take(5)] == [(1, 3.5, "hello")]
    assert (tmp_path / "host-1-spans-1-0.arrow").read_bytes() == b"x" * 70_000
    member.connection.close()
    team.end()
    assert (team.error, team.lost) == (None, set())


def test_a_member_that_goes_away_is_named(team: Team, member: Member) -> None:
    member.start(Lines())
    member.connection.send(rank=1, exit=0)
    member.connection.close()
    eventually(lambda: team.error)
    assert (team.error.kind, "node b is lost" in team.error.message) == ("NodeLost", True)
    assert team.lost == {"b"}


@pytest.mark.parametrize("said", [b"no json\n", b"[1]\n", b'{"file": "x", "size": 9}\nshort'])
def test_one_that_speaks_otherwise_is_gone_too(team: Team, member: Member, said) -> None:
    member.start(Lines())
    member.connection.tcp.sendall(said)
    member.connection.close()
    eventually(lambda: team.error)
    assert team.error.kind == "NodeLost"


def test_a_link_that_a_rank_laid_is_not_followed(
    team: Team, member: Member, tmp_path: Path
) -> None:
    outside = tmp_path.parent / "outside"
    (tmp_path / "host-1-x").symlink_to(outside)
    member.start(Lines())
    member.connection.send(file="x", size=0)
    eventually(lambda: team.error)
    assert not outside.exists()


def test_who_does_not_know_the_secret_is_not_let_in(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.supervisor.team.leader.JOIN", 0.5)
    with pytest.raises(NodesMissing, match="b did not join"):
        Member(team).join(secret="guessed")
    assert team.lost == {"b"}


def test_a_cancelled_run_waits_for_nobody(team: Team) -> None:
    assert not team.gather(lambda *_: None, lambda: False)


def test_the_end_is_told_and_last_words_are_heard(team: Team, member: Member) -> None:
    lines = Lines()
    member.start(lines)

    def leave() -> None:
        assert member.connection.receive() == {"end": True}
        member.connection.send(rank=1, time=1.0, text="last words")
        member.connection.close()

    thread = threading.Thread(target=leave)
    thread.start()
    team.end()
    thread.join(30)
    assert [heard.text for heard in lines.take(5)] == ["last words"]
    assert team.error is None
