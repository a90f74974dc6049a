"""Before the first microbatch torch has imported what a backward needs."""

import subprocess
import sys

SCRIPT = """
import sys
import torch
from workers.runtime.compute.stage import import_backward

import_backward()
before = set(sys.modules)
x = torch.zeros(3, requires_grad=True)
torch.autograd.grad([x * 2], [x], [torch.ones(3)], allow_unused=True)
torch.autograd.backward([x * 2], [torch.ones(3)], inputs=[x])
print(len(set(sys.modules) - before))
"""


def test_the_first_backward_imports_nothing() -> None:
    """In a process of its own: other tests have had their first backward."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
