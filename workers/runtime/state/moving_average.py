"""An exponential moving average of weights over the updates, which is evaluated and saved.

    a = w after the first update; then a = decay * a + (1 - decay) * w

as torch.optim.swa_utils.AveragedModel has it with get_ema_multi_avg_fn.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

AVERAGE = "ema"
"""What checkpoints call it."""


class MovingAverage:
    """Of what a rank updates, which may be nothing. `values` are in float32 at least: in bfloat16
    they would stand still. None before the first update."""

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self.values: list[Tensor] | None = None

    def follow(self, weights: Sequence[Tensor]) -> None:
        """An update has made these."""
        with torch.no_grad():
            fine = [each.to(torch.promote_types(each.dtype, torch.float32)) for each in weights]
            if self.values is None:
                self.values = [each.detach().clone() for each in fine]
            elif fine:
                torch._foreach_lerp_(self.values, fine, 1 - self._decay)

    @property
    def state(self) -> dict[str, list[Tensor]]:
        return {} if self.values is None else {AVERAGE: self.values}

    def load_state(self, state: dict[str, list[Tensor]]) -> None:
        self.values = None
        if AVERAGE in state:
            self.values = [
                each.to(torch.promote_types(each.dtype, torch.float32)) for each in state[AVERAGE]
            ]
