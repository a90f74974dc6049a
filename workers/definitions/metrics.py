"""Numbers that a definition tells beside its loss: logged by the loss, or metrics of held-out
samples."""

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

from torch import Tensor

from backend.runs.events import (
    ENERGY,
    HELD_OUT_LOSS,
    OF_SITES,
    SENT,
    SENT_PLAIN,
    SUMS_PLAIN,
    SUMS_SENT,
)
from backend.runs.request.metric_names import METRIC_NAME, METRIC_NAMES

Metrics = Callable[[Any, Any], Mapping[str, Any]]
"""Of the model's output and the targets, as a loss takes them."""

Sums = dict[str, tuple[float, float]]
"""By name a sum and what it is divided by."""

MOST = 32
OF_BYTES = (SENT, SENT_PLAIN, SUMS_SENT, SUMS_PLAIN)
OWN = ("loss", HELD_OUT_LOSS, "throughput", *OF_BYTES, *OF_SITES, ENERGY)
"""Names that mean the same in every run."""


class Log:
    """What the loss of the microbatch at hand logs: the last value of each name."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __call__(self, name: str, value: Any) -> None:
        """Keep one number. Raises `ValueError` on what is none, and on names that cannot be."""
        self._values[_checked(name)] = value.detach() if isinstance(value, Tensor) else value
        _check_count(self._values)

    def taken(self) -> dict[str, float]:
        """What was logged since this was asked before."""
        values, self._values = self._values, {}
        return {name: _number(name, value) for name, value in values.items()}


def sums_of(found: Any, num_samples: int) -> Sums:
    """What `metrics` gave for so many samples: a number is their mean; a pair (sum, count) is added
    up as it is. Raises `ValueError` on anything else."""
    if not isinstance(found, Mapping):
        raise ValueError(f"metrics() returned a {type(found).__name__}, not a dict")
    _check_count(found)
    return {_checked(name): _pair(name, value, num_samples) for name, value in found.items()}


def merged(parts: Iterable[Sums]) -> Sums:
    """The sums of all parts."""
    found: Sums = {}
    for part in parts:
        for name, (total, count) in part.items():
            before = found.get(name, (0.0, 0.0))
            found[name] = before[0] + total, before[1] + count
    return found


def ratios(sums: Sums) -> dict[str, float]:
    """Each sum by its count; what is not finite is left out."""
    found = {name: total / count for name, (total, count) in sums.items() if count}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _pair(name: str, value: Any, num_samples: int) -> tuple[float, float]:
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ValueError(f"metric {name!r} has {len(value)} parts, not a sum and a count")
        return _number(name, value[0]), _number(name, value[1])
    return num_samples * _number(name, value), num_samples


def _number(name: str, value: Any) -> float:
    if isinstance(value, Tensor) and value.numel() == 1:
        return float(value.item())
    if not isinstance(value, Real):
        kind = f"tensor of {tuple(value.shape)}" if isinstance(value, Tensor) else type(value)
        raise ValueError(f"metric {name!r} is a {kind}, not a number")
    return float(value)


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not METRIC_NAME.fullmatch(name) or name in OWN:
        raise ValueError(
            f"a metric cannot be named {name!r}: use {METRIC_NAMES}, and none of {', '.join(OWN)}"
        )
    return name


def _check_count(values: Mapping[str, Any]) -> None:
    if len(values) > MOST:
        raise ValueError(f"more than {MOST} metrics")
