"""Whether a model can be profiled as a whole in the memory that this process has."""

import sys

import psutil
import torch

from workers.profiler.described import Sketch

if sys.platform != "win32":
    import resource

COPIES = 6
"""Of the trained weights at the peak: the model's, those of the layers' benches and of the whole
model's, a velocity of either, and the gradients or the weights that an update makes."""
USABLE = 0.9
"""Of the free memory: the rest is for workspaces, and for what grows beside."""


def needed(sketch: Sketch) -> int:
    """Bytes that a profile of the whole model takes beside the process itself. The chain of layers
    and the whole model each keep the activations of one microbatch."""
    layers = sketch.layered.layers
    weights = sum(layer.parameter_bytes for layer in layers)
    constants = sum(layer.frozen_bytes + layer.buffer_bytes for layer in layers)
    return COPIES * weights + constants + 2 * sum(sketch.sizes.saved)


def free(device: torch.device) -> int:
    """Bytes that this process may still take on the device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] * USABLE)
    room = psutil.virtual_memory().available
    if sys.platform.startswith("linux"):
        most, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if most != resource.RLIM_INFINITY:
            room = min(room, most - psutil.Process().memory_info().data)
    return int(max(0, room) * USABLE)
