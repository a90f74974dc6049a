"""Samples of tokens: for the next token, for hidden ones, and for one text from another."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from workers.data.drawn import generator_of
from workers.data.ragged import PAD_TARGET
from workers.data.texts.stretches import Stretches
from workers.data.texts.wanted import WantedInputs, mask_like, positions
from workers.definitions.samples import Samples

HIDDEN, RANDOM = 0.8, 0.1
"""Of the tokens to be found again, so many are replaced by the mask and by any other token; the
rest stay as they are. As BERT has it, and transformers' `DataCollatorForLanguageModeling`."""


@dataclass(frozen=True, slots=True)
class NextTokens:
    """Every token is to be followed by the next. `length`: to which samples are filled up with
    `pad`, `varies`: only as far as a bucket asks."""

    stretches: Stretches
    wanted: WantedInputs
    length: int
    pad: int
    varies: bool = False
    is_at_hand: bool = True
    labels: None = None
    is_causal: bool = True

    def __len__(self) -> int:
        return len(self.stretches)

    @property
    def lengths(self) -> Tensor | None:
        return self.stretches.lengths if self.varies else None

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self._given(self._tokens(numbers, length), numbers, length)

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self.stretches.rows(
            self.stretches.labels, numbers, length or self.length, PAD_TARGET
        )

    def _tokens(self, numbers: Tensor, length: int | None) -> Tensor:
        return self.stretches.rows(self.stretches.tokens, numbers, length or self.length, self.pad)

    def _given(self, tokens: Tensor, numbers: Tensor, length: int | None) -> Samples:
        texts = self.stretches.rows(self.stretches.texts, numbers, length or self.length, -1)
        like = self.wanted.like.get("attention_mask")
        return self.wanted.of(
            {
                "input_ids": lambda: tokens,
                "attention_mask": lambda: mask_like(like, texts, self.is_causal),
                "position_ids": lambda: positions(texts),
                "token_type_ids": lambda: torch.zeros_like(tokens),
            }
        )


@dataclass(frozen=True, slots=True)
class HiddenTokens(NextTokens):
    """Some tokens, others in every epoch, are to be found again; never those in `special`. Every
    sample has one at least. `share` of them, drawn per sample by (`seed`, `epoch`, its number)."""

    share: float = 0.15
    mask: int = 0
    vocabulary: int = 1
    special: Tensor | None = None
    seed: int = 0
    epoch: int = -1
    is_causal: bool = False

    def of_epoch(self, seed: int, epoch: int) -> "HiddenTokens":
        return replace(self, seed=seed, epoch=epoch)

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self._given(self._drawn(numbers, length)[0], numbers, length)

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self._drawn(numbers, length)[1]

    def _drawn(self, numbers: Tensor, length: int | None) -> tuple[Tensor, Tensor]:
        """The tokens with some of them hidden, and what was there."""
        tokens = self._tokens(numbers, length)
        labels = torch.full_like(tokens, PAD_TARGET)
        sizes = self.stretches.lengths[numbers].tolist()
        for row, (number, size) in enumerate(zip(numbers.tolist(), sizes, strict=True)):
            generator = generator_of(self.seed, self.epoch, number)
            own = tokens[row, :size]  # drawn alike, however far the sample is filled up
            tokens[row, :size], labels[row, :size] = self.hidden(own, generator)
        return tokens, labels

    def hidden(self, tokens: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """One sample's tokens as the model is given them, and those it is to find."""

        def drawn(share: float) -> Tensor:
            return torch.bernoulli(torch.full(tokens.shape, share), generator=generator).bool()

        assert self.special is not None, "made with the tokenizer's special tokens"
        special = torch.isin(tokens, self.special)
        chances = torch.full(tokens.shape, self.share).masked_fill(special, 0.0)
        chosen = torch.bernoulli(chances, generator=generator).bool()
        hidden = drawn(HIDDEN) & chosen
        others = drawn(RANDOM / (1 - HIDDEN)) & chosen & ~hidden
        words = torch.randint(self.vocabulary, tokens.shape, generator=generator)
        if not chosen.any():  # a mean over no token is no number
            free = (~special).nonzero().flatten()
            place = free[torch.randint(len(free), (1,), generator=generator)]
            chosen[place] = hidden[place] = True
        found = torch.where(hidden, self.mask, torch.where(others, words, tokens))
        return found, torch.where(chosen, tokens, PAD_TARGET)


@dataclass(frozen=True, slots=True)
class Translations:
    """One text from another: the decoder is given the text that is to come, one token later,
    behind `start`."""

    sources: Stretches
    answers: Stretches
    wanted: WantedInputs
    length: int
    pad: int
    start: int
    varies: bool = False
    is_at_hand: bool = True
    labels: None = None

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> Tensor | None:
        both = torch.maximum(self.sources.lengths, self.answers.lengths)
        return both if self.varies else None

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        size = length or self.length
        tokens = self.sources.rows(self.sources.tokens, numbers, size, self.pad)
        answers = self.answers.rows(self.answers.tokens, numbers, size, self.pad)
        begun = torch.cat((answers.new_full((len(answers), 1), self.start), answers[:, :-1]), 1)
        places = torch.arange(size)
        heard = places < self.sources.lengths[numbers][:, None]
        told = places < self.answers.lengths[numbers][:, None]

        def mask(name: str, real: Tensor) -> Tensor:
            example = self.wanted.like.get(name)
            return real.to(torch.long if example is None else example.dtype)

        return self.wanted.of(
            {
                "input_ids": lambda: tokens,
                "attention_mask": lambda: mask("attention_mask", heard),
                "decoder_input_ids": lambda: begun,
                "decoder_attention_mask": lambda: mask("decoder_attention_mask", told),
            }
        )

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self.answers.rows(self.answers.tokens, numbers, length or self.length, PAD_TARGET)
