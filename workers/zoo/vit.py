"""Vision Transformer B/16 (Dosovitskiy et al., ICLR 2021), 86.6 million parameters."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Self-attention and a perceptron, each normalised before and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.qkv(self.norm1(x)).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        total: Tensor = x + self.mlp(self.norm2(x))
        return total


class ViT(nn.Module):
    """Pictures as patches and a class token to logits."""

    def __init__(
        self, image: int, patch: int, width: int, depth: int, heads: int, classes: int
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        places = torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02
        self.places = nn.Parameter(places)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.patches(picture).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x)[:, 0])
        return logits


def model(
    image: int = 224,
    patch: int = 16,
    width: int = 768,
    depth: int = 12,
    heads: int = 12,
    classes: int = 1000,
) -> nn.Module:
    return ViT(image, patch, width, depth, heads, classes)


def example(batch: int, image: int = 224, classes: int = 1000) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, image, image), torch.randint(classes, (batch,))
