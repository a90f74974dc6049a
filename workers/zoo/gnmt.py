"""GNMT: LSTM translation with attention (Wu et al., 2016), GNMT-8 and (layers=16) GNMT-16."""

import torch
from torch import Tensor, nn
from torch.nn import functional

PADDING = 0


class Attention(nn.Module):
    """Bahdanau's additive attention of every query over all keys (ICLR 2015, appendix A)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, queries: Tensor, memory: Tensor, absent: Tensor) -> Tensor:
        sums = self.query(queries).unsqueeze(2) + self.key(memory).unsqueeze(1)
        scores = self.score(torch.tanh(sums)).squeeze(-1)
        scores = scores.masked_fill(absent.unsqueeze(1), -1e4)
        context: Tensor = scores.softmax(-1) @ memory
        return context


class Encoder(nn.Module):
    """Words; one bidirectional layer, then plain ones with residuals from the third on."""

    def __init__(self, tokens: int, width: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(tokens, width, padding_idx=PADDING)
        self.first = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.layers = nn.ModuleList(
            nn.LSTM(width if index else 2 * width, width, batch_first=True)
            for index in range(depth - 1)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor) -> Tensor:
        x, _ = self.first(self.dropout(self.words(source)))
        for index, layer in enumerate(self.layers):
            y, _ = layer(self.dropout(x))
            x = y + x if index else y
        memory: Tensor = x
        return memory


class Decoder(nn.Module):
    """Words and the attention's context into every layer; residuals from the third on."""

    def __init__(self, tokens: int, width: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(tokens, width, padding_idx=PADDING)
        self.first = nn.LSTM(width, width, batch_first=True)
        self.attention = Attention(width)
        self.layers = nn.ModuleList(
            nn.LSTM(2 * width, width, batch_first=True) for _ in range(depth - 1)
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, tokens)

    def forward(self, target: Tensor, memory: Tensor, absent: Tensor) -> Tensor:
        x, _ = self.first(self.dropout(self.words(target)))
        context = self.attention(x, memory, absent)
        for index, layer in enumerate(self.layers):
            y, _ = layer(torch.cat([self.dropout(x), context], -1))
            x = y + x if index else y
        logits: Tensor = self.classifier(x)
        return logits


class GNMT(nn.Module):
    """(source, target so far) as token numbers to the logits of the next target tokens."""

    def __init__(self, tokens: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.encoder = Encoder(tokens, width, layers // 2, dropout)
        self.decoder = Decoder(tokens, width, layers // 2, dropout)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        logits: Tensor = self.decoder(target, self.encoder(source), source == PADDING)
        return logits


def model(
    layers: int = 8, width: int = 1024, tokens: int = 32320, dropout: float = 0.2
) -> nn.Module:
    return GNMT(tokens, width, layers, dropout)


def example(
    batch: int, length: int = 50, tokens: int = 32320
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    source = torch.randint(1, tokens, (batch, length))
    source[::2, length * 3 // 4 :] = PADDING
    target = torch.randint(1, tokens, (batch, length + 1))
    return (source, target[:, :-1]), target[:, 1:]


def loss(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=PADDING)
