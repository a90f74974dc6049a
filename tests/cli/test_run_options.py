"""What `stageflow run` asks for, as it is stored."""

from pathlib import Path

from backend.bootstrap import connect
from backend.runs.request.spec import StopSpec, TrainSpec
from backend.settings import Settings
from tests.app.seed import a_profile, plan_for
from tests.cli.conftest import Command


def test_evaluations_and_the_end_of_a_run(stageflow: Command, database: None, home: Path) -> None:
    backend = connect(Settings(home=home))
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    plan = plan_for(backend, backend.profiles.add(a_profile(), definition.id, None))
    words = "--evaluate 50 --patience 5 --watch f1 --max-updates 700 --max-seconds 90".split()
    refused = stageflow("run", "--plan", str(plan.id), *words, "--detach")
    assert refused.code == 1
    assert "nobody knows which values of 'f1' are better" in refused.err
    words += ["--better", "larger", "--keep-best", "--detach", "--json"]
    queued = stageflow("run", "--plan", str(plan.id), *words).json
    spec = backend.runs.get(queued["id"]).spec
    assert isinstance(spec, TrainSpec)
    assert (spec.evaluate, spec.stop) == (50, StopSpec(5, "f1", "larger", 700, 90.0))
    assert spec.checkpoints.best
