"""Two machines that have one home, wrongly: neither clears away what the other one works in."""

import pytest

from backend.runs.request.spec import TrainSpec
from backend.runs.states import RunState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def hosts(new_hosts):
    hosts = new_hosts(2)
    hosts.share_home()
    hosts.start()
    return hosts


def test_the_run_says_that_its_folder_is_in_use_and_by_whom(hosts, spec: TrainSpec):
    run = hosts.finished(spec)
    assert run.state is RunState.FAILED
    assert (run.error.kind, run.attempt) == ("FolderInUse", 1), hosts.logs()
    assert "in use by an agent on host-0" in run.error.message
    assert "STAGEFLOW_SHARED" in run.error.advice
    folder = hosts.settings.run_folder(run.id, 1)
    assert (folder / "definition" / "slow.py").exists()
    assert (folder / "work").is_dir()
