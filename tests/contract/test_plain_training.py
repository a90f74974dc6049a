"""Contract: a run of one stage has the losses of a plain PyTorch loop, to the last bit.

The models are in double precision; those of the zoo and the config are in float32.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import nn

import workers.zoo
from backend.codec import to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.profile import Tracing
from backend.runs.job import Job
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, TrainSpec
from tests.contract.launching import launch, losses_by_case
from tests.contract.plain_models import CONFIG, KEEPING, OTHERS
from tests.integration.runtime.plain import plain
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.profiler.retrace import traced_again

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all cases

ZOO = {
    "resnet_digits": {},
    "gpt_tiny": {},
    "awd_lm": {"tokens": 50, "words": 8, "width": 12, "length": 6},
}
NAMES = (*KEEPING, *OTHERS, "config", "program", *ZOO)
SEED, MICROBATCH = 7, 4


@dataclass(frozen=True)
class PlainCase:
    """A job of one stage: by a tracing, with the whole model built and run first, or with every
    forward computed twice."""

    file: Path
    spec: TrainSpec


def case_of(folder: Path, name: str) -> list[PlainCase]:
    """With the left-over samples too, which make microbatches of another shape."""
    file = _file(folder, name)
    definition = load(file, ZOO.get(name, {}))
    torch.manual_seed(0)
    inputs, targets = definition.example(MICROBATCH)
    layered = prepare(definition, (inputs, targets), SEED)
    tracing, _ = traced_again(definition, inputs, layered, torch.device("cpu"))
    stages = (Stage(0, len(layered.layers), (0,)),)
    spec = TrainSpec(
        1,
        Plan("test", Partition(stages), "1f1b-flush", MICROBATCH, batch=2),
        data=DataSpec("synthetic", 30, last="keep"),
        optimizer=OptimizerSpec("momentum", 0.05),
        epochs=2,
        seed=SEED,
        parameters=ZOO.get(name, {}),
    )
    kinds: set[Tracing] = {"", tracing}
    again = replace(spec, plan=replace(spec.plan, schedule="gpipe", recompute=True))
    return [
        *(PlainCase(file, replace(spec, tracing=kind)) for kind in sorted(kinds)),
        PlainCase(file, again),
    ]


def _file(folder: Path, name: str) -> Path:
    if name in ZOO:
        return Path(workers.zoo.__file__).parent / f"{name}.py"
    if name == "program":
        layers = nn.Linear(6, 300), nn.BatchNorm1d(300), nn.Tanh(), nn.Linear(300, 4)
        any_batch = ({0: torch.export.Dim("batch", min=1, max=64)},)
        model, inputs = nn.Sequential(*layers).double(), (torch.rand(4, 6).double(),)
        program = torch.export.export(model, inputs, dynamic_shapes=any_batch)
        torch.export.save(program, folder / "net.pt2")
        return folder / "net.pt2"
    file = folder / ("config.json" if name == "config" else f"{name.replace(' ', '_')}.py")
    file.write_text(CONFIG if name == "config" else (KEEPING | OTHERS)[name])
    return file


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[PlainCase]]:
    folder = tmp_path_factory.mktemp("definitions")
    return {name: case_of(folder, name) for name in NAMES}


@pytest.fixture(scope="module")
def losses(
    cases: dict[str, list[PlainCase]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[float]]:
    """Every case, by its name and tracing, in a process of ranks."""
    root, jobs = tmp_path_factory.mktemp("plain"), []
    for name, found in cases.items():
        for number, case in enumerate(found):
            folder = root / f"{len(jobs)}"
            folder.mkdir()
            job = Job(1, 1, f"{name}:{number}", case.spec, str(case.file), str(folder), 1)
            (folder / "job.json").write_bytes(to_json(Job, job))
            jobs.append(folder / "job.json")
    return losses_by_case(launch(jobs, 1))


@pytest.mark.parametrize("name", NAMES)
def test_one_stage_has_the_losses_of_plain_pytorch(
    name: str, cases: dict[str, list[PlainCase]], losses: dict[str, list[float]]
) -> None:
    torch.set_num_threads(1)
    expected = plain(cases[name][0].file, cases[name][0].spec).losses
    assert len(expected) == 2 * 4
    for number in range(len(cases[name])):
        assert losses[f"{name}:{number}"] == expected


@pytest.mark.parametrize("name", KEEPING)
def test_a_loop_that_forgets_what_forwards_leave_is_told_apart(
    name: str, cases: dict[str, list[PlainCase]], losses: dict[str, list[float]]
) -> None:
    case = cases[name][0]
    assert losses[f"{name}:0"] != plain(case.file, case.spec, forgets=True).losses
