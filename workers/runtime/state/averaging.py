"""Elastic averaging of the pipelines on a device with their reference model.

    d_n = alpha (x_n - ref)     x_n -= d_n     ref += sum over pipelines of d_n

(Zhang, Choromanska, LeCun, NeurIPS 2015, section 2; AvgPipe, PPoPP 2023). Every pipeline keeps
its own copy of the reference, and all copies stay equal, because all add the same sum.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Sum = Callable[[Tensor], None]
"""Puts the sum over the pipelines in a tensor's place."""


def average(
    weights: Sequence[Tensor], reference: Sequence[Tensor], alpha: float, add_up: Sum
) -> None:
    """One exchange, in place. It conserves ref + the sum of all x_n."""
    if not weights:
        return
    with torch.no_grad():
        away = list(torch._foreach_sub(list(weights), list(reference)))
        torch._foreach_mul_(away, alpha)
        torch._foreach_sub_(list(weights), away)
        for tensor in away:
            add_up(tensor)
        torch._foreach_add_(list(reference), away)
