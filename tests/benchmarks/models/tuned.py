"""The small GPT of `characters` on a small set of another kind: a module's code, after prose."""

import argparse
import inspect

import torch
from torch import Tensor

from workers.zoo.gpt_tiny import CONTEXT, TOKENS, example, model

WINDOWS, HELD_OUT = 512, 256
__all__ = ["data", "example", "model"]


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Windows that share no character that is predicted; those held out follow the others."""
    codes = torch.tensor([ord(letter) % TOKENS for letter in inspect.getsource(argparse)])
    windows = codes.unfold(0, CONTEXT + 1, CONTEXT)[: WINDOWS + HELD_OUT]
    train, held_out = windows[:WINDOWS], windows[WINDOWS:]
    return (train[:, :-1], train[:, 1:]), (held_out[:, :-1], held_out[:, 1:])
