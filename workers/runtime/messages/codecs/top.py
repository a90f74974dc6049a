"""The largest numbers of each sample, and the gradients at their places.

forth  | values, row by row | a bit for each number, or the places in their rows less 32,768 |
back   | values |
"""

import math

import torch
from torch import Tensor

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.codec import Numbers
from backend.pipeline.codecs.top import has_map, kept_per_row, place_bytes
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.codecs.coder import Coder, as_bytes, numbers_of

_MIDDLE = 1 << 15
"""Places in short rows are counted from here, for they are sent with a sign."""
_BITS = (128, 64, 32, 16, 8, 4, 2, 1)


class TopRoundTrip:
    """A number that is NaN or infinite is larger than all others, so that it is sent."""

    def __init__(self, percent: int) -> None:
        self.percent = percent
        self.places: Tensor | None = None

    def of(self, flow: Flow) -> Coder:
        if flow is Flow.ACTIVATION:
            return _Largest(self)
        assert self.places is not None, "gradients come after the activations"
        return _AtPlaces(self.places)


class _Largest:
    """Tells its round trip the places in the flat tensor that were sent."""

    def __init__(self, round_trip: TopRoundTrip) -> None:
        self._round_trip = round_trip

    def encode(self, tensor: Tensor) -> Tensor:
        numbers, percent = numbers_of(TensorSpec.of(tensor)), self._round_trip.percent
        kept = _largest(tensor.reshape(numbers.rows, -1), kept_per_row(numbers, percent)).flatten()
        self._round_trip.places = places = kept.nonzero().flatten()
        where = _mapped(kept) if has_map(numbers, percent) else _listed(places, numbers)
        return torch.cat((as_bytes(tensor.flatten()[places]), where))

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        numbers, percent = numbers_of(spec), self._round_trip.percent
        count = numbers.rows * kept_per_row(numbers, percent)
        values, where = coded[: count * numbers.width], coded[count * numbers.width :]
        if has_map(numbers, percent):
            places = _unmapped(where, numbers.count)
        else:
            places = _unlisted(where, numbers)
        self._round_trip.places = places
        return _AtPlaces(places).decode(values, spec)


class _AtPlaces:
    """The numbers at some places of the flat tensor; all others are read as 0."""

    def __init__(self, places: Tensor) -> None:
        self._places = places

    def encode(self, tensor: Tensor) -> Tensor:
        return as_bytes(tensor.flatten()[self._places])

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        whole = torch.zeros(spec.shape, dtype=spec.dtype, device=coded.device)
        whole.view(-1)[self._places] = coded.view(spec.dtype)
        return whole


def _largest(rows: Tensor, count: int) -> Tensor:
    """Where the `count` largest magnitudes of each row are; of equal ones the first."""
    sizes = rows.abs().nan_to_num_(nan=math.inf, posinf=math.inf)
    least = sizes.topk(count, dim=1, sorted=False).values.amin(dim=1, keepdim=True)
    kept = sizes >= least
    if int(kept.sum()) > count * len(rows):
        level, above = sizes == least, sizes > least
        room = count - above.sum(dim=1, keepdim=True)
        kept = above | (level & (level.cumsum(dim=1) <= room))
    return kept


def _mapped(kept: Tensor) -> Tensor:
    """A bit for each, the first in the highest bit of a byte."""
    eights = torch.nn.functional.pad(kept, (0, -len(kept) % 8)).view(-1, 8)
    bits = torch.tensor(_BITS, dtype=torch.uint8, device=kept.device)
    return (eights * bits).sum(dim=1, dtype=torch.uint8)


def _unmapped(where: Tensor, count: int) -> Tensor:
    bits = torch.tensor(_BITS, dtype=torch.uint8, device=where.device)
    return (where.unsqueeze(1) & bits).flatten()[:count].nonzero().flatten()


def _listed(places: Tensor, numbers: Numbers) -> Tensor:
    """Each as its place in its row."""
    in_row = places % (numbers.count // numbers.rows)
    if place_bytes(numbers) == 2:
        return as_bytes((in_row - _MIDDLE).to(torch.int16))
    return as_bytes(in_row.to(torch.int32))


def _unlisted(where: Tensor, numbers: Numbers) -> Tensor:
    if place_bytes(numbers) == 2:
        in_row = where.clone().view(torch.int16).long() + _MIDDLE
    else:
        in_row = where.clone().view(torch.int32).long()
    starts = torch.arange(numbers.rows, device=where.device) * (numbers.count // numbers.rows)
    return (in_row.view(numbers.rows, -1) + starts.unsqueeze(1)).flatten()
