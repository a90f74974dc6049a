"""Random numbers inside a model: the same for a microbatch, whichever schedule runs it.

A forward begins with a seed of its own, so a recomputation repeats its forward, and dropout
does not depend on the order in which a rank works.
"""

import torch


def forward_seed(run: int, epoch: int, stage: int, microbatch: int) -> int:
    """The seed of one forward, of 63 bits (each step multiplies by a constant of Knuth's
    MMIX, The Art of Computer Programming 2, section 3.3.4)."""
    value = run
    for part in (epoch, stage, microbatch):
        value = (value * 6364136223846793005 + part + 1442695040888963407) % 2**63
    return value


def set_seed(value: int, device: torch.device) -> None:
    """Let the device's random numbers begin at `value`."""
    if device.type == "cuda":
        torch.cuda.manual_seed(value)
    torch.default_generator.manual_seed(value)
