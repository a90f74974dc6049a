"""Run in a copy of the tree with the exercise applied: the new action in a real training.

Three processes train with the schedule "synced"; their weights are those of the reference.
"""

import tempfile
from pathlib import Path

from safetensors.torch import load_file

from backend.pipeline.kinds import Kind
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from backend.prediction.uniform import UniformDurations
from tests.contract.runtime_cases import USUAL, Case
from tests.contract.runtime_reference import reference
from tests.contract.test_runtime_weights import distance, job_of, launch

CASE = Case(**USUAL | {"schedule": "synced", "replicas": (2, 1)})


def main() -> None:
    program = lower(schedule("synced"), Shape(CASE.replicas, 8, CASE.batch))
    assert not verify(program)
    new = program.rows.kind == Kind["SYNC_BUFFERS"]
    assert new.any()
    timeline = simulate(program, UniformDurations(1.0, 2.0))
    assert (timeline.rows.kind == Kind["SYNC_BUFFERS"]).sum() == new.sum()
    with tempfile.TemporaryDirectory() as folder:
        list(launch([job_of(Path(folder), CASE)], CASE.num_ranks))
        saved = load_file(Path(folder) / CASE.name / "model.safetensors")
        assert distance(saved, reference(CASE).weights) < 1e-10
    print("trained")


if __name__ == "__main__":
    main()
