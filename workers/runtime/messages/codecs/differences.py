"""What has changed in a sample since it passed last, added at both ends to what they keep of it.

| rows of samples that pass for the first time, as they are | differences of the others in blocks |
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from backend.pipeline.actions import Flow
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.codecs.blocks import BlockCoder, exact_dtype
from workers.runtime.messages.codecs.coder import Coder, Past, as_bytes, numbers_of

SAMPLES = ".samples"
"""Behind the name of kept rows: that of the numbers of their samples."""


class SampleMemory:
    """Of one tensor over one cut, at one end: of each sample the row that was read last. Samples
    whose rows are of another length are others."""

    def __init__(self) -> None:
        self._rows: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)

    def num_known(self, samples: Sequence[int], per_row: int) -> int:
        """How many of these have passed, with so many numbers each."""
        rows = self._rows[per_row]
        return sum(each in rows for each in samples)

    def of(self, samples: Sequence[int]) -> Past:
        """What is known of the samples of a microbatch."""
        return _Known(self._rows, samples)

    @property
    def state(self) -> dict[str, Tensor]:
        """Rows of one length under that length, and the numbers of their samples."""
        found: dict[str, Tensor] = {}
        for per_row, rows in self._rows.items():
            if rows:
                found[str(per_row)] = torch.stack(list(rows.values()))
                found[f"{per_row}{SAMPLES}"] = torch.tensor(list(rows))
        return found

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self._rows.clear()
        for name, rows in state.items():
            if not name.endswith(SAMPLES):
                samples = state[f"{name}{SAMPLES}"].tolist()
                each = (row.clone() for row in rows)
                self._rows[int(name)] = dict(zip(samples, each, strict=True))


class _Known:
    """Rows are kept in place, so that memory does not grow while they are renewed."""

    def __init__(self, rows: defaultdict[int, dict[int, Tensor]], samples: Sequence[int]) -> None:
        self._rows, self._samples = rows, samples

    def before(self, spec: TensorSpec, device: torch.device) -> tuple[Tensor, Tensor]:
        per_row = numbers_of(spec).per_row
        rows = self._rows[per_row]
        found = [rows[each] for each in self._samples if each in rows]
        known = torch.tensor([each in rows for each in self._samples], device=device)
        last = torch.stack(found) if found else torch.empty(0, per_row, device=device)
        return known, last.to(spec.dtype)

    def after(self, read: Tensor) -> None:
        rows = self._rows[read.shape[1]]
        for sample, row in zip(self._samples, read, strict=True):
            if sample in rows:
                rows[sample].copy_(row)
            else:
                rows[sample] = row.clone()


class DifferenceTrip:
    """Of activations the differences, of gradients all."""

    def __init__(self, blocks: BlockCoder, gradient: Coder, past: Past) -> None:
        self._blocks, self._gradient, self._past = blocks, gradient, past

    def of(self, flow: Flow) -> Coder:
        if flow is Flow.GRADIENT:
            return self._gradient
        return _Differences(self._blocks, self._past)


class _Differences:
    """The sender reads what it has coded, so that both ends keep the same to the last bit."""

    def __init__(self, blocks: BlockCoder, past: Past) -> None:
        self._blocks, self._past = blocks, past

    def encode(self, tensor: Tensor) -> Tensor:
        spec = TensorSpec.of(tensor)
        rows, exact = tensor.detach().reshape(spec.num_rows, -1), exact_dtype(tensor.dtype)
        known, before = self._past.before(spec, tensor.device)
        coded = as_bytes(rows[~known])
        if len(before):
            differences = rows[known].to(exact) - before.to(exact)
            coded = torch.cat((coded, self._blocks.encode(differences)))
        self.decode(coded, spec)
        return coded

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        numbers, exact = numbers_of(spec), exact_dtype(spec.dtype)
        known, before = self._past.before(spec, coded.device)
        size = (numbers.rows - len(before)) * numbers.per_row * numbers.width
        read = torch.empty(numbers.rows, numbers.per_row, dtype=spec.dtype, device=coded.device)
        read[~known] = coded[:size].view(spec.dtype).view(-1, numbers.per_row)
        if len(before):
            form = TensorSpec(tuple(before.shape), exact, requires_grad=False)
            # a part of a tensor may begin where no number of four bytes can
            differences = self._blocks.decode(coded[size:].clone(), form)
            read[known] = (before.to(exact) + differences).to(spec.dtype)
        self._past.after(read)
        return read.view(spec.shape)
