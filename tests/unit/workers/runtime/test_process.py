"""How a process of a run begins; docs/evidence/prediction.md says what kept memory saves."""

import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.codec import to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile, Tracing
from backend.runs.job import Emulation, Job
from backend.runs.request.spec import TrainSpec
from workers.runtime import main, process
from workers.runtime.process import tell_stacks

ASK = "from workers.runtime.process import keep_freed_memory; print(keep_freed_memory())"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_memory_is_kept() -> None:
    """In a process of its own: it cannot be undone."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_signal_writes_the_stack(capfd: pytest.CaptureFixture[str]) -> None:
    tell_stacks()
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        faulthandler.unregister(signal.SIGUSR2)
    assert "in test_a_signal_writes_the_stack" in capfd.readouterr().err


IMPORTED = """
import sys
import workers.runtime.main
heavy = {"torch._dynamo", "sympy", "transformers", "sqlalchemy", "torch.distributed.tensor"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_rank_starts_without_what_few_models_need() -> None:
    """Each of these takes half a second or more, on every rank."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def job_file(folder: Path, tracing: Tracing, emulation: Emulation | None = None) -> Path:
    plan = Plan("", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "gpipe", 4)
    file = folder / "job.json"
    spec = TrainSpec(1, plan, tracing=tracing)
    file.write_bytes(to_json(Job, Job(1, 1, "", spec, "x.py", "", 2, emulation=emulation)))
    return file


EMULATION = Emulation(
    Profile("", ModelGraph.chain((Layer("a", "Linear", 1.0, 1.0, 4, 4),)), 4),
    Cluster((Level(2, 1e9),)),
    1.0,
)


@pytest.mark.parametrize(
    ("tracing", "emulation", "expected"),
    [
        ("symbolic", None, process.LATE),
        ("captured", None, process.LATE + process.LATE_IF_CAPTURED),
        ("captured", EMULATION, ()),
    ],
    ids=["a model", "one that is captured", "no model"],
)
def test_before_ranks_are_forked_is_imported_what_their_job_needs(
    tracing: Tracing,
    emulation: Emulation | None,
    expected: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(process, "import_module", imported.append)
    main.before_fork([str(job_file(tmp_path, tracing, emulation))])
    assert tuple(imported) == expected


FORKED = """
import sys
from pathlib import Path
import torch
from workers.definitions.loader import load
from workers.definitions.prepare import outlined
from workers.runtime.main import before_fork
from workers.sandbox.forking import PREPARED, _threads

before_fork(sys.argv[1:2])
threads, before = _threads() - PREPARED, set(sys.modules)
definition = load(Path(sys.argv[2]), {})
outlined(definition, definition.example(4)[0], "symbolic")
late = {name.split(".")[0] for name in set(sys.modules) - before}
print(threads, "torch" in late, "sympy" in late)
"""


def test_what_is_imported_before_suffices_for_a_model_and_begins_no_thread(tmp_path: Path) -> None:
    """With a thread the ranks would be started one by one."""
    import workers.zoo

    mlp = Path(workers.zoo.__file__).parent / "mlp.py"
    words = [str(job_file(tmp_path, "symbolic")), str(mlp)]
    done = subprocess.run(
        [sys.executable, "-c", FORKED, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set() False False\n"


BEGUN = """
import gc, os, runpy, sys

end = os._exit
def tell(code):
    print(code, gc.isenabled(), gc.get_freeze_count() > 100_000, flush=True)
    end(0)

os._exit = sys.exit = tell
gc.callbacks.append(lambda phase, info: info["generation"] < 2 or print(phase))
sys.argv = ["main", "nowhere.json"]
runpy.run_module("{module}", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["workers.runtime.main", "workers.profiler.main"])
def test_what_a_program_imports_is_never_looked_through(module: str) -> None:
    """Of an order that is not there it tells all the same."""
    code = BEGUN.replace("{module}", module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *told, last = done.stdout.splitlines()
    assert [line for line in told if line in ("start", "stop")] == []
    assert "nowhere.json" in done.stdout
    assert last == "1 True True"
