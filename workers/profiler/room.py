"""What memory a model needs to be profiled as a whole."""

from workers.profiler.described import Sketch

COPIES = 6
"""Of the trained weights at the peak: the model's, those of the layers' benches and of the whole
model's, a velocity of either, and the gradients or the weights that an update makes."""


def needed(sketch: Sketch) -> int:
    """Bytes that a profile of the whole model takes beside the process itself. The chain of layers
    and the whole model each keep the activations of one microbatch."""
    layers = sketch.layered.layers
    weights = sum(layer.parameter_bytes for layer in layers)
    constants = sum(layer.frozen_bytes + layer.buffer_bytes for layer in layers)
    return COPIES * weights + constants + 2 * sum(sketch.sizes.saved)
