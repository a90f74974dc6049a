"""A Llama of 6.7 billion parameters, frozen, with low-rank adapters on two projections of each
block (Hu et al., ICLR 2022)."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM


class Adapter(nn.Module):
    """A projection that stays as it is, and beside it a product of two narrow ones."""

    def __init__(self, base: nn.Linear, rank: int):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Scores(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens, use_cache=False).logits


def model(width: int = 4096, inner: int = 11008, depth: int = 32, heads: int = 32, rank: int = 16):
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        vocab_size=32000,
    )
    base = LlamaForCausalLM(config).requires_grad_(False)
    for block in base.model.layers:
        attention = block.self_attn
        attention.q_proj = Adapter(attention.q_proj, rank)
        attention.v_proj = Adapter(attention.v_proj, rank)
    return Scores(base)


def example(batch: int, length: int = 128):
    tokens = torch.randint(32000, (batch, length))
    return tokens, tokens.roll(-1, 1)


def loss(output, target):
    return cross_entropy(output.flatten(0, -2), target.flatten())
