"""Running a model without a trace of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from workers.definitions.module_state.module_state import ModuleState


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Inside, the model may run in any mode; its state, its mode and the random generators are
    after it what they were before."""
    with torch.random.fork_rng():
        before = ModuleState.of(model)
        try:
            yield
        finally:
            before.restore()
