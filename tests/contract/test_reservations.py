"""A run on several hosts has all of its nodes or none, on every database."""

from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.run import Run, RunSummary
from backend.runs.spec import TrainSpec
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
    assert "b by run" in backend.runs.why_apart(backend.runs.get(second.id))
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
    assert backend.dispatch.summons("b") is None
    backend.dispatch.summon(run, attempt, "10.0.0.1", 4711, "secret")
    asked = backend.dispatch.summons("b")
    assert asked is not None
    assert (asked.run_id, asked.address, asked.port, asked.secret) == (
        run.id,
        "10.0.0.1",
        4711,
        "secret",
    )
    assert backend.dispatch.answer(asked, "b")
    assert not backend.dispatch.answer(asked, "b")
    assert backend.dispatch.summons("b") is None


def test_nobody_overtakes_a_run_that_needs_the_node(backend: Backend, ask) -> None:
    one, both, later = ask(), ask("a", "b"), ask()
    assert backend.dispatch.waiting_for("a") == [one.id, both.id]
    assert backend.dispatch.waiting_for("b") == [one.id]
    assert backend.dispatch.waiting_for("c") == [one.id, later.id]
