"""Models that are not cut, or in which one part is not: each says why."""

_HEAD = "import random\nimport torch\nfrom torch import nn\n"


def _net(first: str, forward: str) -> str:
    return f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 4)
        {first}
    def forward(self, x):
        {forward}
def model(): return Net()
def example(n): return torch.randn(n, 6), torch.randint(4, (n,))
"""


UNCUT = {
    "a branch on values in the model's own forward": _net(
        "pass", "return self.b(self.a(x) if x.sum() > 0 else self.a(-x))"
    ),
    "a number of Python's from a tensor": _net(
        "pass", "x = self.a(x); return self.b(x / float(x.norm()))"
    ),
    "a count in the model's own attribute": _net(
        "self.n = 0", "self.n += 1; return self.b(self.a(x)) * (1 + self.n // 8)"
    ),
    "a cache that the model's own forward fills": _net(
        "self.mask = None",
        "self.mask = torch.ones(8) if self.mask is None else self.mask; "
        "return self.b(self.a(x) * self.mask)",
    ),
    "random numbers of Python's": _net(
        "pass", "return self.b(self.a(x) * (2 if random.random() < 0.5 else 1))"
    ),
}
"""Files by what they do."""
UNCUT_ARCHITECTURES = ("longformer", "switch_transformers")
NEARLY = ("convnext", "fourier", "mamba")
"""Tensors of these lie in memory in another order than their shape says. Behind a cut they do not,
and kernels may round otherwise: two stages are as near to one as both are to the plain loop."""
