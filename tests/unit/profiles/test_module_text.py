"""Operations read off the text of a module equal torch's own count."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from backend.profiles.module_text import flops

MODULES = {
    "square": (nn.Conv2d(3, 8, kernel_size=3, padding=1, bias=False), (2, 3, 10, 10)),
    "oblong": (nn.Conv2d(4, 6, kernel_size=(5, 1), stride=(2, 1)), (2, 4, 12, 9)),
    "groups": (nn.Conv2d(8, 8, kernel_size=3, groups=4), (1, 8, 7, 7)),
    "linear": (nn.Linear(12, 5), (4, 12)),
}


@pytest.mark.parametrize("name", MODULES)
def test_equal_to_what_torch_counts(name):
    module, shape = MODULES[name]
    with FlopCounterMode(display=False) as counted:
        output = module(torch.zeros(shape))
    assert flops(str(module), output.numel() * 4) == counted.get_total_flops()


@pytest.mark.parametrize("text", ["ReLU(inplace)", "LSTM(1024, 1024)", "Add(inplace)", ""])
def test_of_others_nothing_is_said(text):
    assert flops(text, 400) is None
