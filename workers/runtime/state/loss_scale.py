"""The factor of the loss in float16, whose small gradients would else be lost.

It is halved where a gradient is not finite, and doubled after many updates in which all were
(Micikevicius et al., ICLR 2018, section 3.2; constants of torch.amp.GradScaler).
"""

from dataclasses import dataclass

FIRST, MOST, LEAST = 2.0**16, 2.0**24, 2.0**-24
INTERVAL = 2000
"""Updates without an overflow before it is doubled."""


@dataclass(slots=True)
class LossScale:
    """`value` multiplies the loss. Every rank of a pipeline keeps one, and all stay equal, because
    all are told the same. `quiet` counts updates since the last overflow or doubling, `left_out`
    those that an overflow cost."""

    value: float = FIRST
    quiet: int = 0
    left_out: int = 0

    def told(self, is_finite: bool) -> None:
        """An update is due: whether the gradients of all stages are finite. Where they are not
        it is left out."""
        if not is_finite:
            self.value, self.quiet = max(self.value / 2, LEAST), 0
            self.left_out += 1
            return
        self.quiet += 1
        if self.quiet == INTERVAL:
            self.value, self.quiet = min(self.value * 2, MOST), 0
