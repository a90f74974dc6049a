"""Which pipeline rank holds which stage, where each holds several.

4 pipeline ranks, 2 chunks:   round robin   0 1 2 3 0 1 2 3
                              V             0 1 2 3 3 2 1 0

A V turns on the last rank: it hands stage p - 1's outputs to stage p itself, and the first rank
holds the first stage and the last (Qi et al., ICLR 2024, section 6).
"""

from enum import StrEnum
from typing import Any

import numpy as np


class Placement(StrEnum):
    """How the chunks of a pipeline lie on its ranks."""

    ROUND_ROBIN = "round-robin"
    V = "v"


V_CHUNKS = 2
"""There and back."""


def holder(placement: Placement, stage: Any, size: int) -> Any:
    """The pipeline rank, of `size`, that holds `stage` (a number, or a column of them; those one
    before the first and one behind the last give some rank too)."""
    if placement is Placement.ROUND_ROBIN:
        return stage % size
    return np.minimum(stage, V_CHUNKS * size - 1 - stage)


def stage_at(placement: Placement, chunk: Any, pipeline_rank: Any, size: int) -> Any:
    """The stage that is `chunk`, counted from 0 along the model, of a pipeline rank; in any
    placement that is the stage's number divided by `size`."""
    if placement is Placement.ROUND_ROBIN:
        return chunk * size + pipeline_rank
    return np.where(chunk == 0, pipeline_rank, V_CHUNKS * size - 1 - pipeline_rank)
