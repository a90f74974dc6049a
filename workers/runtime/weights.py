"""The versions of one stage's weights, and the gradients that wait for the next one.

A step makes new tensors, so that a backward still in flight finds the version that its
forward read; where nobody awaits the old version, it is changed in place instead.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from workers.runtime.optimizers import Rule


class Weights:
    """Version 0 is what the segment began with (`begin`)."""

    def __init__(self, initial: dict[str, Tensor], rule: Rule) -> None:
        self._names = tuple(initial)
        self._rule = rule
        self._versions = {0: _leaves([weight.clone() for weight in initial.values()])}
        self._newest = 0
        self._gradients: list[Tensor] = []
        self._is_own = False

    def begin(self) -> None:
        """Call the newest version 0 and forget the others."""
        self._versions = {0: self._versions[self._newest]}
        self._newest = 0

    def at(self, version: int) -> dict[str, Tensor]:
        """That version's tensors by name."""
        return dict(zip(self._names, self._versions[version], strict=True))

    @property
    def newest(self) -> dict[str, Tensor]:
        return self.at(self._newest)

    @property
    def kept(self) -> tuple[int, ...]:
        """The versions that are held at present, ascending."""
        return tuple(sorted(self._versions))

    @property
    def gradients(self) -> list[Tensor]:
        """The sums so far; zeros where nothing was added."""
        if not self._gradients:
            return [torch.zeros_like(weight) for weight in self._versions[self._newest]]
        return self._gradients

    def add(self, gradients: dict[str, Tensor]) -> None:
        """Add one microbatch's gradients, whose tensors others may hold too."""
        new = [gradients[name] for name in self._names]
        if not self._gradients or not new:
            self._gradients, self._is_own = new, False
        elif self._is_own:
            torch._foreach_add_(self._gradients, new)
        else:
            self._gradients, self._is_own = list(torch._foreach_add(self._gradients, new)), True

    def replace_gradients(self, sums: list[Tensor]) -> None:
        """Put the sums over all replicas in place of this replica's own."""
        self._gradients, self._is_own = sums, True

    def step(self, version: int, num_backwards: int, awaited: Callable[[int], bool]) -> None:
        """Make `version` from the newest with the mean over `num_backwards` gradients; drop
        the versions that are not `awaited`."""
        old = self._versions[self._newest]
        with torch.no_grad():
            gradients = self.gradients
            if num_backwards > 1 and gradients:
                gradients = list(torch._foreach_div(gradients, float(num_backwards)))
            in_place = not awaited(self._newest)
            new = self._rule.update(old, gradients, in_place) if old else old
        self._gradients = []
        self._versions = {v: weights for v, weights in self._versions.items() if awaited(v)}
        self._versions[version] = new if in_place else _leaves(new)
        self._newest = version


def _leaves(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.requires_grad_() for tensor in tensors]
