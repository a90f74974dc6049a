"""What the sequential reference keeps in fewer bits, written down once more.

The reference computes every update in float64. What it leaves behind is rounded once: masters and
the optimizer's state not at all, or the latter to bfloat16; matrices to bfloat16, vectors to
float32. The ranks of these cases compute updates in float64 too (`train_cases`), so that both round
the same numbers; with float32 they would differ in a last bit, and now and then round apart.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor


class Rounds(NamedTuple):
    """Whether matrices are kept in bfloat16, masters of them in full, the state in bfloat16."""

    weights: bool
    masters: bool
    state: bool


ROUNDS = {
    "float32-state16": Rounds(False, False, True),
    "bfloat16-masters": Rounds(True, True, False),
    "bfloat16-masters-state16": Rounds(True, True, True),
    "bfloat16-state32": Rounds(True, False, False),
    "bfloat16": Rounds(True, False, True),
}
STATE = ("momentum_buffer", "exp_avg", "exp_avg_sq")
"""What torch's optimizers call it."""


def kept(weight: Tensor, rounds: Rounds) -> Tensor:
    """A version of it."""
    is_matrix = weight.dim() > 1
    return weight.to(torch.bfloat16 if rounds.weights and is_matrix else torch.float32)


def round_state(optimizer: torch.optim.Optimizer) -> None:
    for state in optimizer.state.values():
        for name in STATE:
            if isinstance(state.get(name), Tensor):
                state[name] = state[name].bfloat16().double()


def summed(found: list[Tensor], replicas: int) -> Tensor:
    """Each replica adds up its own, then all do, in the bits that gradients have."""
    return _total(_total(found[replica::replicas]) for replica in range(replicas))


def _total(found: Iterable[Tensor]) -> Tensor:
    first, *others = found
    for other in others:
        first = first + other
    return first


def norm(gradients: Iterable[Tensor]) -> float:
    """The 2-norm of all of them, that of each in float32 at least."""
    norms = (
        torch.linalg.vector_norm(each, dtype=torch.promote_types(each.dtype, torch.float32))
        for each in gradients
    )
    return float(sum(float(each) ** 2 for each in norms)) ** 0.5
