"""The tokens of texts one behind the other, and the stretches of them that are samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from workers.data.ragged import PAD_TARGET
from workers.data.texts.documents import Document


@dataclass(frozen=True, slots=True)
class Stretches:
    """`tokens` and what each is to be followed by (`PAD_TARGET` = that does not count), the number
    of the text that each is of, and (samples, 2) of the first token of each sample and the one
    behind its last."""

    tokens: Tensor
    labels: Tensor
    texts: Tensor
    bounds: Tensor

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def lengths(self) -> Tensor:
        return self.bounds[:, 1] - self.bounds[:, 0]

    def rows(self, values: Tensor, numbers: Tensor, length: int, filling: int) -> Tensor:
        """(samples, length) of `values`, which are one per token, filled up behind them."""
        found = values.new_full((len(numbers), length), filling)
        for row, (start, stop) in enumerate(self.bounds[numbers].tolist()):
            found[row, : stop - start] = values[start:stop]
        return found

    def only(self, useful: Tensor) -> "Stretches":
        """The samples with a token that is `useful`."""
        before = torch.cat((torch.zeros(1, dtype=torch.long), useful.cumsum(0)))
        kept = before[self.bounds[:, 1]] > before[self.bounds[:, 0]]
        return replace(self, bounds=self.bounds[kept])


def stretches(documents: Sequence[Document], length: int, is_packed: bool) -> Stretches:
    """A sample per text, of its first `length` tokens, or with `is_packed` all tokens in samples
    that are full, but for the last. A text's first token follows nothing, however they are laid
    out: the targets of packed texts are those of each alone."""
    tokens = torch.tensor([t for d in documents for t in d.tokens], dtype=torch.long)
    counts = torch.tensor([c for d in documents for c in d.counts], dtype=torch.bool)
    sizes = torch.tensor([len(d.tokens) for d in documents], dtype=torch.long)
    stops = sizes.cumsum(0)
    starts = stops - sizes
    counts[starts[sizes > 0]] = False
    following = torch.where(counts, tokens, PAD_TARGET)[1:]
    labels = torch.cat((following, torch.full((min(1, len(tokens)),), PAD_TARGET)))
    texts = torch.repeat_interleave(torch.arange(len(documents)), sizes)
    if is_packed:
        starts = torch.arange(0, len(tokens), length)
        bounds = torch.stack((starts, (starts + length).clamp(max=len(tokens))), 1)
    else:
        bounds = torch.stack((starts, torch.minimum(stops, starts + length)), 1)[sizes > 0]
    return Stretches(tokens, labels, texts, bounds)
