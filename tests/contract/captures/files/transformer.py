"""torch's own encoder and decoder, with a mask of padding."""

import torch
from torch import Tensor, nn


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.others, self.head = (
            nn.Embedding(20, 8),
            nn.Embedding(20, 8),
            nn.Linear(8, 20),
        )
        self.inner = nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        padding = source == 0
        x = self.inner(
            self.words(source),
            self.others(target),
            tgt_mask=causal,
            src_key_padding_mask=padding.float(),
            memory_key_padding_mask=padding.float(),
        )
        return self.head(x)


def model() -> nn.Module:
    return Translator()


def example(n: int):
    text = torch.randint(1, 20, (n, 7))
    return (torch.randint(20, (n, 6)), text[:, :-1]), text[:, 1:]
