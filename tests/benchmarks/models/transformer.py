"""An encoder of six transformer layers of 256 units over 64 words out of 2,000."""

import torch
from torch import Tensor, nn

WORDS, WIDTH, LENGTH, LAYERS = 2000, 256, 64, 6


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.mixed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.mixed(self.norms[0](x)).view(x.shape[0], LENGTH, 3, 4, WIDTH // 4)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norms[1](x))))


def model() -> nn.Module:
    layers = [Layer() for _ in range(LAYERS)]
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers, nn.Linear(WIDTH, WORDS))


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randint(WORDS, (batch, LENGTH)), torch.randint(WORDS, (batch, LENGTH))
