"""Random numbers inside a model: the same for a microbatch, whichever schedule runs it.

A forward begins with a seed of its own, so a recomputation repeats its forward, and dropout
does not depend on the order in which a rank works.
"""

import torch

from workers.definitions.seeds import derived


def forward_seed(run: int, epoch: int, stage: int, microbatch: int) -> int:
    """The seed of one forward."""
    return derived(run, epoch, stage, microbatch)


def set_seed(value: int, device: torch.device) -> None:
    """Let the device's random numbers begin at `value`."""
    if device.type == "cuda":
        torch.cuda.manual_seed(value)
    torch.default_generator.manual_seed(value)
