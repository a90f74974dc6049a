"""The text of a module in graph.txt: how torch prints it, or its kind with its operations."""

import re
from math import isfinite

FLOAT_BYTES = 4
_WHOLE = r"([1-9][0-9]{0,17})"
_CONVOLUTION = re.compile(rf"Conv2d\({_WHOLE}, [0-9]+, kernel_size=\({_WHOLE}, {_WHOLE}\)")
_LINEAR = re.compile(rf"Linear\(in_features={_WHOLE},")
_STATED = re.compile(r"\w+\(flops=([0-9]{1,18}(?:\.[0-9]{0,24})?(?:e[+-]?[0-9]{1,3})?)\)$")
_GROUPS = re.compile(rf"groups={_WHOLE}")


def text_of(kind: str, flops: float | None) -> str:
    """A text that `flops` reads; PipeDream's own programs take any."""
    return kind if flops is None else f"{kind}(flops={flops!r})"


def flops(text: str, output_bytes: int) -> float | None:
    """Of a forward whose outputs are float32 of `output_bytes`: two per weight and element of
    the output that it takes part in; or what `text_of` states. None for all others."""
    if found := _STATED.match(text):
        stated = float(found.group(1))
        return stated if isfinite(stated) else None
    elements = output_bytes / FLOAT_BYTES
    if found := _CONVOLUTION.match(text):
        taken, high, wide = map(int, found.groups())
        groups = int(found.group(1)) if (found := _GROUPS.search(text)) else 1
        return 2.0 * elements * taken * high * wide / groups
    if found := _LINEAR.match(text):
        return 2.0 * elements * int(found.group(1))
    return None
