"""The small GPT of the zoo on a longer text: the topics of Python's own documentation."""

from pydoc_data.topics import topics

import torch
from torch import Tensor, nn

from workers.zoo.gpt_tiny import CONTEXT, GPT, TOKENS

WINDOWS, HELD_OUT = 2048, 512


def model() -> nn.Module:
    return GPT()


def example(batch: int) -> tuple[Tensor, Tensor]:
    text = torch.randint(TOKENS, (batch, CONTEXT + 1))
    return text[:, :-1], text[:, 1:]


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Windows that share no character that is predicted; those held out follow the others."""
    text = "".join(topics[name] for name in sorted(topics))
    codes = torch.tensor([ord(letter) % TOKENS for letter in text])
    windows = codes.unfold(0, CONTEXT + 1, CONTEXT)[: WINDOWS + HELD_OUT]
    train, held_out = windows[:WINDOWS], windows[WINDOWS:]
    return (train[:, :-1], train[:, 1:]), (held_out[:, :-1], held_out[:, 1:])
