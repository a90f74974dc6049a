"""The text of a module in graph.txt: how torch prints it, or its kind with its operations."""

import re

FLOAT_BYTES = 4
_CONVOLUTION = re.compile(r"Conv2d\((\d+), \d+, kernel_size=\((\d+), (\d+)\)")
_LINEAR = re.compile(r"Linear\(in_features=(\d+),")
_STATED = re.compile(r"\w+\(flops=([\d.e+-]+)\)$")
_GROUPS = re.compile(r"groups=(\d+)")


def text_of(kind: str, flops: float | None) -> str:
    """A text that `flops` reads; PipeDream's own programs take any."""
    return kind if flops is None else f"{kind}(flops={flops!r})"


def flops(text: str, output_bytes: int) -> float | None:
    """Of a forward whose outputs are float32 of `output_bytes`: two per weight and element of
    the output that it takes part in; or what `text_of` states. None for all others."""
    if found := _STATED.match(text):
        return float(found.group(1))
    elements = output_bytes / FLOAT_BYTES
    if found := _CONVOLUTION.match(text):
        taken, high, wide = map(int, found.groups())
        groups = int(found.group(1)) if (found := _GROUPS.search(text)) else 1
        return 2.0 * elements * taken * high * wide / groups
    if found := _LINEAR.match(text):
        return 2.0 * elements * int(found.group(1))
    return None
