"""AWD-LSTM language model (Merity et al., ICLR 2018), 24.2 million parameters."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional


class LockedDropout(nn.Module):
    """One mask per sequence, the same at every time step (section 4.2)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(share)

    def forward(self, x: Tensor) -> Tensor:
        mask: Tensor = self.dropout(torch.ones_like(x[:, :1]))
        return x * mask


class WeightDropLSTM(nn.Module):
    """DropConnect on the recurrent weights (section 2)."""

    def __init__(self, inputs: int, width: int, share: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, batch_first=True)
        self.dropout = nn.Dropout(share)

    def forward(self, x: Tensor) -> Tensor:
        weights = {"weight_hh_l0": self.dropout(self.lstm.weight_hh_l0)}
        outputs: Tensor = functional_call(self.lstm, weights, (x,))[0]
        return outputs


class AwdLstm(nn.Module):
    """Token numbers to the logits of the next ones; the words' vectors are tied to the output."""

    def __init__(self, tokens: int, words: int, width: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(tokens, words)
        nn.init.uniform_(self.words.weight, -0.1, 0.1)
        self.drop_words, self.drop_input = nn.Dropout(0.25 * dropout), LockedDropout(dropout)
        sizes = [words, *[width] * (depth - 1), words]
        self.layers = nn.ModuleList(
            WeightDropLSTM(inputs, outputs, 1.25 * dropout) for inputs, outputs in pairwise(sizes)
        )
        self.drops = nn.ModuleList(LockedDropout(dropout) for _ in range(depth))
        self.bias = nn.Parameter(torch.zeros(tokens))

    def forward(self, text: Tensor) -> Tensor:
        table = self.words.weight
        dropped = table * self.drop_words(torch.ones_like(table[:, :1]))
        x = self.drop_input(functional.embedding(text, dropped))
        for layer, drop in zip(self.layers, self.drops, strict=True):
            x = drop(layer(x))
        return functional.linear(x, table, self.bias)


def model(
    tokens: int = 10000, words: int = 400, width: int = 1150, depth: int = 3, dropout: float = 0.4
) -> nn.Module:
    return AwdLstm(tokens, words, width, depth, dropout)


def example(batch: int, length: int = 70, tokens: int = 10000) -> tuple[Tensor, Tensor]:
    text = torch.randint(tokens, (batch, length + 1))
    return text[:, :-1], text[:, 1:]
