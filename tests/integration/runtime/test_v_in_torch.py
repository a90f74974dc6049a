"""Torch's own runtime trains by our files of chunks in a V, on real processes: a plain loop's
gradients."""

from pathlib import Path

import pytest
import torch
from torch import nn

from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.torch_csv import write_csv
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from tests.contract.launching import launch
from tests.integration.runtime import v_in_torch
from tests.integration.runtime.v_in_torch import MICROBATCHES, batch, fresh

pytestmark = pytest.mark.slow
NAMES = ("zb-v", "v-half", "v-min", "dualpipe-v")


def test_torch_trains_by_our_files_of_a_v(tmp_path: Path) -> None:
    shape = Shape((1, 1), MICROBATCHES, MICROBATCHES, chunks=2, placement=Placement.V)
    files = [tmp_path / f"{name}.csv" for name in NAMES]
    for name, file in zip(NAMES, files, strict=True):
        file.write_text(write_csv(lower(schedule(name), shape)))
    launch([tmp_path, *files], 2, v_in_torch.__name__)
    inputs, targets = batch()
    plain = nn.Sequential(*fresh())
    nn.functional.cross_entropy(plain(inputs), targets).backward()
    expected = {name: weight.grad for name, weight in plain.named_parameters()}
    for name in NAMES:
        parts = [torch.load(tmp_path / f"{name}-{rank}.pt") for rank in range(2)]
        found = {key: gradient for part in parts for key, gradient in part.items()}
        assert found.keys() == expected.keys()
        for key, gradient in expected.items():
            torch.testing.assert_close(found[key], gradient, rtol=1e-12, atol=1e-14)
