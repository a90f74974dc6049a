"""GPT-2 (Radford et al., 2019), decoder-only transformer, 124 million parameters."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            part.view(shape).transpose(1, 2) for part in self.c_attn(x).split(width, 2)
        )
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        joined: Tensor = self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        return joined


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalised before and added to its input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attn(self.ln_1(x)))
        total: Tensor = x + self.mlp(self.ln_2(x))
        return total


class GPT2(nn.Module):
    """Token numbers to the logits of the next ones; the words' vectors are tied to the output."""

    def __init__(
        self, tokens: int, width: int, depth: int, heads: int, context: int, dropout: float
    ) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, tokens, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                deep = name.endswith(("c_proj.weight", "mlp.2.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * depth) ** 0.5 if deep else 0.02)
        self.lm_head.weight = self.wte.weight

    def forward(self, text: Tensor) -> Tensor:
        places = torch.arange(text.shape[1], device=text.device)
        x = self.drop(self.wte(text) + self.wpe(places))
        for block in self.h:
            x = block(x)
        logits: Tensor = self.lm_head(self.ln_f(x))
        return logits


def model(
    tokens: int = 50257,
    width: int = 768,
    depth: int = 12,
    heads: int = 12,
    context: int = 1024,
    dropout: float = 0.1,
) -> nn.Module:
    return GPT2(tokens, width, depth, heads, context, dropout)


def example(batch: int, length: int = 128, tokens: int = 50257) -> tuple[Tensor, Tensor]:
    text = torch.randint(tokens, (batch, length + 1))
    return text[:, :-1], text[:, 1:]
