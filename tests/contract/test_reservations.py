"""A run on several hosts has all of its nodes or none, on every database."""

from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.dispatch.turns import Turn
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState

STAGES = (Stage(0, 1, (0,)), Stage(1, 2, (1,)))


@pytest.fixture
def ask(backend: Backend):
    """Submit a run on these nodes, of one device each."""
    for name in "abc":
        backend.nodes.beat(name, (Device("cpu"),), address=f"10.0.0.{ord(name)}")
    definition = backend.definitions.add("m.py", b"def model():\n    return None\n")
    base = TrainSpec(definition.id, Plan("", Partition(STAGES), "pipedream", 4))

    def submit(*nodes: str) -> Run:
        return backend.runs.submit(replace(base, nodes=nodes))

    return submit


def test_nodes_tell_their_address(backend: Backend, ask) -> None:
    assert {node.name: node.address for node in backend.nodes.list()}["b"] == "10.0.0.98"


def test_all_nodes_or_none(backend: Backend, ask) -> None:
    first, second, third = ask("a", "b"), ask("c", "b"), ask()
    assert backend.dispatch.claim(first.id, "b") is None  # the node of rank 0 leads
    attempt = backend.dispatch.claim(first.id, "a")
    assert attempt is not None
    assert backend.dispatch.claim(second.id, "c") is None
    assert backend.runs.line().turns[second.id] == Turn(second.id, ("c", "b"))
    assert backend.dispatch.claim(third.id, "b") is None  # b is held, though it carries nothing
    attempt.finish(RunState.CANCELLED, RunSummary())
    assert backend.dispatch.claim(second.id, "c") is not None
    assert backend.dispatch.claim(third.id, "b") is None


def test_a_node_that_carries_a_run_is_not_reserved(backend: Backend, ask) -> None:
    alone, both = ask(), ask("a", "b")
    assert backend.dispatch.claim(alone.id, "b") is not None
    assert backend.dispatch.claim(both.id, "a") is None


def test_an_summons_is_answered_once_while_the_run_is_live(backend: Backend, ask) -> None:
    run = ask("a", "b")
    attempt = backend.dispatch.claim(run.id, "a")
    assert attempt is not None
    assert backend.dispatch.reservations.summons("b") is None
    backend.dispatch.summon(attempt, "10.0.0.1", 4711, "secret")
    asked = backend.dispatch.reservations.summons("b")
    assert asked is not None
    assert (asked.run_id, asked.address, asked.port, asked.secret) == (
        run.id,
        "10.0.0.1",
        4711,
        "secret",
    )
    assert backend.dispatch.reservations.answered(asked, "b")
    assert not backend.dispatch.reservations.answered(asked, "b")
    assert backend.dispatch.reservations.summons("b") is None


def test_nobody_overtakes_a_run_that_needs_the_node(backend: Backend, ask) -> None:
    attempt = backend.dispatch.claim(ask().id, "b")
    assert attempt is not None
    both, later = ask("a", "b"), ask()
    assert backend.dispatch.waiting_for("a") == backend.dispatch.waiting_for("b") == []
    assert backend.dispatch.waiting_for("c") == [later.id]
    attempt.finish(RunState.CANCELLED, RunSummary())
    assert backend.dispatch.waiting_for("a") == [both.id]


@pytest.fixture
def restarted(backend: Backend, ask):
    """A run on a and b that lost a node after its first checkpoint, which a has."""

    def lose(node: str) -> Run:
        attempt = backend.dispatch.claim(ask("a", "b").id, "a")
        assert attempt is not None
        attempt.running()
        folder = attempt.checkpoint_folder(1)
        folder.mkdir(parents=True)
        (folder / "stage-0.safetensors").write_bytes(b"12345")
        attempt.checkpoint(Mark(0, 4, 1), [CheckpointFile("stage-0.safetensors", 5, "ab")], 3)
        backend.nodes.lost(node)
        attempt.finish(RunState.FAILED, RunSummary(), RunError("NodeLost", f"{node} is gone"))
        return backend.runs.get(attempt.run.id)

    return lose


def test_a_run_waits_for_a_node_that_was_lost(backend: Backend, restarted) -> None:
    backend.nodes.beat("c", (Device("gpu"),))  # other devices than b's
    run = restarted("b")
    assert run.state is RunState.QUEUED
    assert backend.dispatch.claim(run.id, "a") is None
    assert backend.dispatch.waiting_for("a") == []
    reason = str(backend.runs.why_apart(run))
    assert ("b is not alive" in reason, "same devices" in reason) == (True, True)
    for name in "ab":
        backend.nodes.beat(name, (Device("cpu"),))
    assert backend.runs.why_apart(run) is None
    attempt = backend.dispatch.claim(run.id, "a")
    assert attempt is not None
    assert attempt.run.spec.nodes == ("a", "b")


def test_a_free_node_with_the_same_devices_stands_in(backend: Backend, restarted) -> None:
    run = restarted("b")
    assert backend.runs.why_apart(run) is None
    assert backend.dispatch.waiting_for("c") == []
    assert backend.dispatch.waiting_for("a") == [run.id]
    attempt = backend.dispatch.claim(run.id, "a")
    assert attempt is not None
    assert attempt.run.spec.nodes == ("a", "c")
    assert [share.node for share in attempt.shares] == ["a", "c"]
    assert backend.runs.held() == {"a": {0: run.id}, "c": {0: run.id}}
    assert backend.runs.get(run.id).spec.nodes == ("a", "b")  # as it was asked for


def test_who_sees_the_checkpoint_may_lead_in_the_place_of_the_one_that_did(
    backend: Backend, restarted
) -> None:
    run = restarted("a")
    kept = backend.runs.checkpoints.list(run.id)[0]
    (kept.folder / "stage-0.safetensors").rename(kept.folder / "elsewhere")
    assert backend.dispatch.claim(run.id, "c") is None
    assert "a is not alive" in str(backend.runs.why_apart(run))
    (kept.folder / "elsewhere").rename(kept.folder / "stage-0.safetensors")
    assert backend.dispatch.waiting_for("c") == [run.id]
    attempt = backend.dispatch.claim(run.id, "c")
    assert attempt is not None
    assert attempt.run.spec.nodes == ("c", "b")


def test_a_run_that_was_never_begun_waits_for_its_own_nodes(backend: Backend, ask) -> None:
    run = ask("a", "b")
    backend.nodes.lost("b")
    assert backend.dispatch.claim(run.id, "a") is None
    assert "b is not alive" in str(backend.runs.why_apart(run))
