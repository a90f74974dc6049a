"""torch's own encoder holds nearly all of the model; padding stands at the end of the texts."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4)

    def forward(self, text: Tensor) -> Tensor:
        return self.head(self.encoder(self.words(text), src_key_padding_mask=text == 0))


def model() -> nn.Module:
    return Model()


def example(n: int):
    text = torch.randint(1, 20, (n, 7))
    text[::2, 5:] = 0
    return text[:, :-1], text[:, 1:]
