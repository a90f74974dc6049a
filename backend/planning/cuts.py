"""A partition in one short word, as people type it and links carry it: "14x3-20x1".

One part per stage: where it stops (the number of layers up to there), "x", its replicas.
Devices are taken in order; where that would be wrong they are named: "14@0.2.4-20@1". Replicas
that take unequal shares of the microbatches have these behind: "14x2~2.1-20x1".
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import holder
from backend.planning.plan import Partition, Stage

BY_HAND = "by-hand"
"""Who made a plan whose partition a person has given."""
ADVICE = (
    'Write where each stage stops and its replicas, such as "14x3-20x1", and unequal shares of '
    'replicas behind them, such as "14x2~1.2-20x1".'
)
_PART = re.compile(
    r"([0-9]{1,6})(?:x([0-9]{1,5})|@([0-9]{1,5}(?:\.[0-9]{1,5})*))(?:~([0-9]{1,4}(?:\.[0-9]{1,4})*))?"
)


def write_cut(cut: Partition) -> str:
    """The word for `cut`; its order of layers and its chunks are not in it."""
    stages = cut.stages[: cut.pipeline_size]
    in_order = _in_order([stage.replicas for stage in stages])
    if tuple(stage.devices for stage in stages) == in_order:
        words = [f"{stage.stop}x{stage.replicas}" for stage in cut.stages]
    else:
        words = [f"{stage.stop}@{_numbers(stage.devices)}" for stage in cut.stages]
    ends = (f"~{_numbers(stage.shares)}" if stage.shares else "" for stage in cut.stages)
    return "-".join(map("".join, zip(words, ends, strict=True)))


def _numbers(found: Sequence[int]) -> str:
    return ".".join(map(str, found))


def read_cut(text: str, base: Partition, num_devices: int) -> Partition:
    """The partition that `text` says, with the order of layers and the chunks of `base`, and
    on its devices while the replicas are the same. Raises `InvalidInput`."""
    parts = [_PART.fullmatch(part) for part in text.replace(" ", "").split("-")]
    found = [part for part in parts if part]
    if len(found) < len(parts):
        raise InvalidInput(f"the cut {text!r:.60} cannot be read", ADVICE)
    shares = tuple(tuple(map(int, part[4].split("."))) if part[4] else () for part in found)
    cut = _read_places(text, found, base.sharing(()), num_devices)
    return cut.sharing(shares)


def _read_places(
    text: str, found: Sequence[re.Match[str]], base: Partition, num_devices: int
) -> Partition:
    """The same without shares."""
    stops = [int(part[1]) for part in found]
    pipeline_size = max(1, len(found) // base.chunks)
    devices = [_devices(part) for part in found[:pipeline_size]]
    if all(named is None for named in devices):
        counts = [int(part[2]) for part in found[:pipeline_size]]
        return _assigned(stops, counts, base, num_devices)
    if None in devices:
        raise InvalidInput(f"the cut {text!r:.60} names the devices of some stages only", ADVICE)
    return _partition(stops, [named for named in devices if named is not None], base)


def cut_of(
    stops: Sequence[int], replicas: Sequence[int], base: Partition, num_devices: int
) -> Partition:
    """Stages that stop there, with so many replicas each; with the devices and shares of `base`
    while the replicas are the same. Raises `InvalidInput`."""
    if len(stops) != len(replicas):
        raise InvalidInput(
            f"{len(stops)} stages have {len(replicas)} numbers of replicas", "Give one each."
        )
    return _assigned(stops, replicas[: max(1, len(stops) // base.chunks)], base, num_devices)


def _devices(part: re.Match[str]) -> tuple[int, ...] | None:
    return tuple(map(int, part[3].split("."))) if part[3] else None


def _assigned(
    stops: Sequence[int], counts: Sequence[int], base: Partition, num_devices: int
) -> Partition:
    if sum(counts) > num_devices:
        raise InvalidInput(
            f"{sum(counts)} replicas do not fit on {num_devices} devices",
            "Take replicas away, or choose a larger cluster.",
        )
    if 0 in counts:
        raise InvalidInput("a stage has 0 replicas", "Each stage needs a device of its own.")
    if tuple(counts) == base.replicas:
        cut = _partition(stops, [stage.devices for stage in base.stages], base)
        return cut.sharing(base.shares)
    return _partition(stops, _in_order(counts), base)


def _in_order(counts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    ends = tuple(accumulate(counts))
    return tuple(tuple(range(end - count, end)) for end, count in zip(ends, counts, strict=True))


def _partition(
    stops: Sequence[int], devices: Sequence[tuple[int, ...]], base: Partition
) -> Partition:
    num_layers = base.stages[-1].stop
    if stops[-1] != num_layers or list(stops) != sorted({*stops}) or stops[0] < 1:
        raise InvalidInput(
            f"stages that stop at {', '.join(map(str, stops))} do not cover {num_layers} layers",
            f"The stops rise, and the last is {num_layers}.",
        )
    firsts, pipeline_size = (0, *stops[:-1]), max(1, len(stops) // base.chunks)
    stages = tuple(
        Stage(first, stop, devices[int(holder(base.placement, number, pipeline_size))])
        for number, (first, stop) in enumerate(zip(firsts, stops, strict=True))
    )
    return replace(base, stages=stages)
