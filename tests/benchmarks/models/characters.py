"""The small GPT of the zoo on a longer text: the topics of Python's own documentation."""

from pydoc_data.topics import topics

import torch
from torch import Tensor

from workers.zoo.gpt_tiny import CONTEXT, TOKENS, example, model

WINDOWS, HELD_OUT = 2048, 512
__all__ = ["data", "example", "model"]


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Windows that share no character that is predicted; those held out follow the others."""
    text = "".join(topics[name] for name in sorted(topics))
    codes = torch.tensor([ord(letter) % TOKENS for letter in text])
    windows = codes.unfold(0, CONTEXT + 1, CONTEXT)[: WINDOWS + HELD_OUT]
    train, held_out = windows[:WINDOWS], windows[WINDOWS:]
    return (train[:, :-1], train[:, 1:]), (held_out[:, :-1], held_out[:, 1:])
