"""The types of a stage's layers with the fewest seconds of exchange, by dynamic programming."""

from collections.abc import Sequence

from backend.planning.channels.exchange import ExchangeSeconds, StageReplicas
from backend.planning.channels.types import LayerType
from backend.planning.channels.units import ChannelUnit

SPLIT, COPIED = tuple(LayerType), (LayerType.SAMPLES,)


def cheapest(
    units: Sequence[ChannelUnit], replicas: StageReplicas, price: float = 1.0
) -> tuple[LayerType, ...]:
    """One type for each unit, such that exchanges within forwards and backwards and `price` times
    the sums of gradients take least; of equal ones samples, then input channels.

    c(l, t) = min over t' of c(l-1, t') + step(t', t), as AccPar's over its layers. A price
    below 1 is for sums that a backward hides in part."""
    found: list[dict[LayerType, tuple[float, LayerType | None]]] = []
    for number, unit in enumerate(units):
        row: dict[LayerType, tuple[float, LayerType | None]] = {}
        for kind in SPLIT if unit.may_split else COPIED:
            if number == 0:
                row[kind] = (_priced(replicas.step(None, unit, kind), price), None)
                continue
            before = units[number - 1]
            ways = (
                (cost + _priced(replicas.step((before, other), unit, kind), price), other)
                for other, (cost, _) in found[-1].items()
            )
            row[kind] = min(ways, key=lambda way: way[0])
        found.append(row)
    ends = {t: c + _priced(replicas.last(units[-1], t), price) for t, (c, _) in found[-1].items()}
    kinds: list[LayerType] = []
    last: LayerType | None = min(ends, key=lambda each: ends[each])
    for row in reversed(found):
        assert last is not None
        kinds.append(last)
        last = row[last][1]
    return tuple(reversed(kinds))


def exchanges(
    units: Sequence[ChannelUnit], kinds: Sequence[LayerType], replicas: StageReplicas
) -> list[ExchangeSeconds]:
    """What each unit takes with what lies between it and the one before; the last one also what
    handing on takes."""
    pairs = list(zip(units, kinds, strict=True))
    before = [None, *pairs[:-1]]
    found = [replicas.step(b, *pair) for b, pair in zip(before, pairs, strict=True)]
    found[-1] = found[-1].plus(replicas.last(*pairs[-1]))
    return found


def _priced(seconds: ExchangeSeconds, price: float) -> float:
    return seconds.forward + seconds.backward + price * seconds.sums
