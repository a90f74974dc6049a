"""Runs in jobs of a Kubernetes whose pods are processes: a SIGTERM is the only warning there."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from backend.runs.states import RunState
from backend.settings import Settings
from tests.contract.kubelet import SETTINGS, kubernetes_engine
from tests.integration.pools.rig import UPDATES, PoolRig
from workers.pool_agent import AGENT
from workers.pools.engine import Engine
from workers.pools.handed_down import handed_down

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GRACE = ("--grace", "60")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PoolRig]:
    with ExitStack() as stack:

        def engine(settings: Settings) -> Engine:
            printed = tmp_path / "printed"
            printed.mkdir()
            given = handed_down(settings, tmp_path / "secrets") | {"HOME": str(tmp_path)}
            cores = replace(SETTINGS, device="cpu", variables={"OMP_NUM_THREADS": "1"})
            opened = kubernetes_engine(printed, cores, environment=given)
            return stack.enter_context(opened)

        rig = PoolRig(tmp_path / "home", engine)
        rig.command = (*AGENT, *GRACE)
        rig.begin()
        yield rig
        rig.close()


def test_a_job_that_is_told_to_end_saves_and_the_next_one_goes_on(rig: PoolRig) -> None:
    """As where Kueue preempts it, or its node is drained: all pods are told at once."""
    told = rig.submit(rig.training(2))
    rig.wait(lambda: len(rig.curve(told.id)) > UPDATES // 4)
    rig.engine.end(rig.jobs(told.id)[0].name)
    ended = rig.until_final(told.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    first, second = rig.backend.runs.attempts(told.id)
    assert (first.outcome, first.error.kind) == ("restarted", "AgentWarned")
    assert second.step is not None
    assert [job.attempt for job in rig.jobs(told.id)] == [1, 2]
    straight = rig.submit(rig.training(2))
    assert rig.until_final(straight.id).state is RunState.SUCCEEDED
    assert len(rig.curve(straight.id)) == UPDATES
    assert rig.curve(told.id) == rig.curve(straight.id)
    assert rig.jobs(told.id)[1].hosts == ("n0", "n1")


def test_a_cancelled_run_leaves_no_job(rig: PoolRig) -> None:
    run = rig.submit(rig.training(2))
    rig.wait(lambda: len(rig.curve(run.id)) > 3)
    rig.backend.runs.cancel(run.id)
    assert rig.until_final(run.id).state is RunState.CANCELLED
    rig.wait(lambda: all(job.is_over for job in rig.jobs(run.id)))
    assert not rig.agents()
