"""Small GPT (decoder-only transformer) that learns the text of Python's standard library."""

import inspect
import string
import textwrap

import torch
from torch import Tensor, nn
from torch.nn import functional

CONTEXT, WIDTH, HEADS, DEPTH, TOKENS = 64, 64, 4, 4, 128


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        joined: Tensor = self.project(y.transpose(1, 2).reshape(batch, length, width))
        return joined


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalised before and added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        hidden = functional.gelu(self.up(self.norm2(x)))
        total: Tensor = x + self.down(hidden)
        return total


class GPT(nn.Module):
    """Characters to the logits of the next character."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        places = torch.arange(text.shape[1], device=text.device)
        x = self.tokens(text) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def model() -> nn.Module:
    return GPT()


def example(batch: int) -> tuple[Tensor, Tensor]:
    text = torch.randint(TOKENS, (batch, CONTEXT + 1))
    return text[:, :-1], text[:, 1:]


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    source = "".join(inspect.getsource(module) for module in (textwrap, string))
    codes = torch.tensor([ord(letter) % TOKENS for letter in source])
    windows = codes.unfold(0, CONTEXT + 1, CONTEXT // 4)
    stop = len(windows) * 9 // 10
    train, held_out = windows[:stop], windows[stop + 4 :]
    return (train[:, :-1], train[:, 1:]), (held_out[:, :-1], held_out[:, 1:])
