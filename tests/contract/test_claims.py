"""Processes that claim the same runs at once: every run goes to one of them, once."""

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.runs.request.spec import ProfileSpec
from backend.runs.states import RunState
from tests.contract.racing import claimed

NUM_RUNS, NUM_NODES = 40, 4


def test_no_run_is_claimed_twice(backend: Backend, definition: Definition):
    ids = [backend.runs.submit(ProfileSpec(definition.id)).id for _ in range(NUM_RUNS)]
    nodes = [f"node{number}" for number in range(NUM_NODES)]
    assert claimed(backend, nodes, ids) == sorted(f"{run_id} 1" for run_id in ids)
    for run_id in ids:
        run = backend.runs.get(run_id)
        assert (run.state, run.attempt) == (RunState.STARTING, 1)
        assert [line.text for line in backend.runs.logs.list(run_id)] == [run.node]
