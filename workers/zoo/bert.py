"""BERT for masked words (Devlin et al., NAACL 2019), base: 110 million parameters."""

import torch
from torch import Tensor, nn
from torch.nn import functional

IGNORED = -100


class Layer(nn.Module):
    """Self-attention and a perceptron, each added to its input and normalised after."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.project, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        shape = (*x.shape[:2], self.heads, x.shape[2] // self.heads)
        query, key, value = (
            part(x).view(shape).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        y = functional.scaled_dot_product_attention(query, key, value, mask)
        y = self.project(y.transpose(1, 2).reshape(x.shape))
        x = self.norm1(x + self.dropout(y))
        y = self.down(functional.gelu(self.up(x)))
        total: Tensor = self.norm2(x + self.dropout(y))
        return total


class Bert(nn.Module):
    """(token numbers, which are there) to the logits of the masked tokens."""

    def __init__(
        self, tokens: int, width: int, depth: int, heads: int, context: int, dropout: float
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.segments = nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(depth))
        self.transform, self.head_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.decoder = nn.Linear(width, tokens)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.decoder.weight = self.words.weight

    def forward(self, text: Tensor, there: Tensor) -> Tensor:
        places = torch.arange(text.shape[1], device=text.device)
        first = torch.zeros_like(text)
        x = self.words(text) + self.places(places) + self.segments(first)
        x = self.dropout(self.norm(x))
        mask = there[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        x = self.head_norm(functional.gelu(self.transform(x)))
        logits: Tensor = self.decoder(x)
        return logits


def model(
    tokens: int = 30522,
    width: int = 768,
    depth: int = 12,
    heads: int = 12,
    context: int = 512,
    dropout: float = 0.1,
) -> nn.Module:
    return Bert(tokens, width, depth, heads, context, dropout)


def example(
    batch: int, length: int = 128, tokens: int = 30522
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    text = torch.randint(tokens, (batch, length))
    there = torch.ones(batch, length, dtype=torch.bool)
    there[::2, length * 3 // 4 :] = False
    target = torch.full_like(text, IGNORED)
    target[:, ::7] = text[:, ::7]
    return (text, there), target


def loss(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=IGNORED)
