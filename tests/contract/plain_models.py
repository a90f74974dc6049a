"""Definitions that keep something from forward to forward, or compute their weights, or share them.

Each is a text of a definition's file in double precision, with samples of six numbers and four
classes, or of five words of twelve.
"""

import json

from tests.unit.workers.architectures import CONFIGS

_HEAD = "import random\nimport torch\nfrom torch import nn\n"
_NUMBERS = """
def example(n): return torch.randn(n, 6).double(), torch.randint(4, (n,))
"""
_WORDS = """
def example(n): return torch.randint(12, (n, 5)), torch.randint(12, (n, 5))
"""


def _chain(layers: str) -> str:
    return f"{_HEAD}def model(): return nn.Sequential({layers}).double()\n{_NUMBERS}"


def _inner(first: str, forward: str, before: str = "") -> str:
    """A module of its own between two linear layers: what it begins with, and its forward of x."""
    return f"""{_HEAD}{before}
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        {first}
    def forward(self, x):
        {forward}
def model(): return nn.Sequential(nn.Linear(6, 8), Inner(), nn.Tanh(), nn.Linear(8, 4)).double()
{_NUMBERS}"""


def _root(first: str, forward: str) -> str:
    """The same in the model itself, whose forward begins and ends with a linear layer."""
    return f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 4)
        {first}
    def forward(self, x):
        x = self.a(x)
        {forward}
        return self.b(x.tanh())
def model(): return Net().double()
{_NUMBERS}"""


def _words(layers: str, forward: str) -> str:
    return f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
    def forward(self, x): return {forward}
def model(): return Net().double()
{_WORDS}"""


_MEAN = 'self.register_buffer("mean", torch.zeros(8))'
_AVERAGED = "self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)\n        return x - self.mean"
_IN_PLACE = "self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))\n        return x - self.mean"
_GROWING = "return x * (1 + {} // 8)"

KEEPING = {
    "buffer reassigned": _inner(_MEAN, _AVERAGED),
    "buffer in place": _inner(_MEAN, _IN_PLACE),
    "buffer that is not saved": _inner(_MEAN.replace("8))", "8), persistent=False)"), _IN_PLACE),
    "tensor as attribute": _inner("self.mean = torch.zeros(8).double()", _AVERAGED),
    "tensor in place": _inner("self.mean = torch.zeros(8).double()", _IN_PLACE),
    "count": _inner("self.n = 0", "self.n += 1\n        " + _GROWING.format("self.n")),
    "count in the model": _root("self.n = 0", "self.n += 1; x = x * (1 + self.n // 8)"),
    "list": _inner("self.n = []", "self.n.append(1)\n        " + _GROWING.format("len(self.n)")),
    "dictionary": _inner("self.n = {'n': 0}", "self.n['n'] += 1\n        return x * self.n['n']"),
    "name of the file": _inner("pass", "N[0] += 1\n        return x * (1 + N[0] // 8)", "N = [0]"),
    "class": _inner("type(self).n = 0", "type(self).n += 1\n        return x * (1 + self.n // 8)"),
    "hook": _root(
        "n = [0]\n        def hook(module, given, made):\n            n[0] += 1\n"
        "            return made * (1 + n[0] // 8)\n        self.a.register_forward_hook(hook)",
        "pass",
    ),
    "first batch sets a scale": _root(
        "self.scale = None",
        "self.scale = x.detach().std(0) if self.scale is None else self.scale; x = x / self.scale",
    ),
    "last batch is read": _root(
        "self.last = None",
        "y = x if self.last is None else x + self.last.mean(0); self.last, x = x.detach(), y",
    ),
    "generator": _root(
        "self.own = torch.Generator().manual_seed(3)",
        "x = x + torch.randn(x.shape, generator=self.own).double()",
    ),
}
"""What a forward leaves is read by the next one."""

OTHERS = {
    "accumulated constant": _root(
        "pass", "s = torch.zeros(8).double(); s.add_(x.sum(0)); x = x + s"
    ),
    "batch norm": _chain("nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4)"),
    "dropout": _chain("nn.Linear(6, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 4)"),
    "spectral norm": _chain(
        "nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 4)"
    ),
    "weight norm": _chain(
        "nn.utils.parametrizations.weight_norm(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 4)"
    ),
    "weight norm by a hook": _chain(
        "nn.utils.weight_norm(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 4)"
    ),
    "frozen": _chain(
        "nn.Linear(6, 8).requires_grad_(False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4)"
    ),
    "buffers of the constructor": _root(
        'self.register_buffer("scale", torch.arange(8.0).sin(), persistent=False)\n'
        "        self.table = torch.arange(8.0).cos().double()",
        "x = x * self.scale + self.table",
    ),
    "cache": _root(
        "self.cache = {}",
        "n = len(x)\n        if n not in self.cache: self.cache[n] = torch.arange(n).double().sin()"
        "\n        x = x + self.cache[n][:, None]",
    ),
    "noted, not read": _root("pass", "self.last = x"),
    "tied": _words(
        "self.e, self.l, self.o = nn.Embedding(12, 6), nn.Linear(6, 6), nn.Linear(6, 12)\n"
        "        self.o.weight = self.e.weight",
        "self.o(self.l(self.e(x)).tanh())",
    ),
    "recurrent": _words(
        "self.e, self.o = nn.Embedding(12, 6), nn.Linear(7, 12)\n"
        "        self.r = nn.LSTM(6, 7, batch_first=True)",
        "self.o(self.r(self.e(x))[0])",
    ),
    "embedding with a greatest norm": _words(
        "self.e, self.o = nn.Embedding(12, 6, max_norm=1.0), nn.Linear(6, 12)",
        "self.o(self.e(x).tanh())",
    ),
    "Python's random numbers": _root("pass", "x = x * 2 if random.random() < 0.5 else x"),
}

CONFIG = json.dumps({"model_type": "gpt2"} | CONFIGS["gpt2"])
"""GPT-2 with tied weights and dropout, in single precision."""
