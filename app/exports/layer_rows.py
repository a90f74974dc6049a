"""Layers of a profile as rows of a table."""

from app.formats import seconds, size
from backend.profiles.layer import Layer

LAYER_HEAD = ["layer", "kind", "forward", "backward", "output", "parameters"]


def layer_row(layer: Layer) -> list[str]:
    """The cells under `LAYER_HEAD`."""
    return [
        layer.name,
        layer.kind,
        seconds(layer.forward),
        seconds(layer.backward),
        size(layer.output_bytes),
        size(layer.parameter_bytes),
    ]
