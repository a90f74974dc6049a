"""The versions of one stage's weights, and the gradients that wait for the next one.

A step makes new tensors, so that a backward still in flight finds the version that its
forward read; where nobody awaits the old version, it is changed in place instead.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.state.averaging import Sum, average
from workers.runtime.state.learning_rate import RateFactor
from workers.runtime.state.optimizers import Optimizer


def full(updates: int) -> float:
    """The learning rate as it is, always."""
    return 1.0


class Weights:
    """Version 0 is what the segment began with (`begin`); at first the given tensors themselves.

    `buckets` hold the gradients of a replicated stage. Without `stash` there is one version
    under every number: a step changes it under the graphs that are alive, as naive pipelining
    does (PipeDream, section 3.3), and their gradients belong to no version. With `masters`, by
    name, updates and averages are made on these, and versions are rounded from them.
    """

    def __init__(
        self,
        initial: dict[str, Tensor],
        optimizer: Optimizer,
        buckets: Buckets | None = None,
        stash: bool = True,
        rate: RateFactor = full,
        masters: dict[str, Tensor] | None = None,
    ) -> None:
        self._names = tuple(initial)
        self._optimizer, self._rate, self._stash = optimizer, rate, stash
        self.buckets, self._masters = buckets, masters
        self._versions = {0: self._named([*initial.values()])}
        self._newest = 0
        self._updates = 0
        self._gradients: list[Tensor] = []
        self._is_own = False
        self.reference: dict[str, Tensor] | None = None

    def keep_reference(self) -> None:
        """Let the pipelines' reference begin as the newest version."""
        self.reference = {name: weight.detach().clone() for name, weight in self.exact.items()}

    @property
    def optimizer_state(self) -> dict[str, list[Tensor]]:
        """As `Optimizer.state` gives it."""
        return self._optimizer.state

    def restore(
        self,
        weights: dict[str, Tensor],
        optimizer_state: dict[str, list[Tensor]],
        updates: int,
        left_out: int = 0,
    ) -> None:
        """Go on from these weights, all of them, as exact as they are known, after so many
        updates, `left_out` of which were skipped."""
        if self._masters is not None:
            self._masters = {n: weights[n].to(m, copy=True) for n, m in self._masters.items()}
        old, exact = self.newest, self._masters or weights
        self._versions = {0: self._named([exact[n].to(old[n], copy=True) for n in self._names])}
        self._newest, self._updates = 0, updates
        self._optimizer.load_state(optimizer_state, updates - left_out)

    def begin(self) -> None:
        """Call the newest version 0 and forget the others."""
        self._versions = {0: self._versions[self._newest]}
        self._newest = 0

    def at(self, version: int) -> dict[str, Tensor]:
        """That version's tensors by name."""
        return self._versions[version if self._stash else self._newest]

    @property
    def newest(self) -> dict[str, Tensor]:
        return self._versions[self._newest]

    @property
    def exact(self) -> dict[str, Tensor]:
        """What is known best of the newest version: the masters, or the version itself."""
        return self.newest if self._masters is None else self._masters

    @property
    def evaluated(self) -> dict[str, Tensor]:
        """What is evaluated and saved, as the model computes with it: the reference of the
        pipelines, or the newest version."""
        if self.reference is None:
            return self.newest
        return {name: self.reference[name].to(weight) for name, weight in self.newest.items()}

    @property
    def kept(self) -> tuple[int, ...]:
        """The versions that are held at present, ascending."""
        return tuple(sorted(self._versions))

    @property
    def gradients(self) -> Sequence[Tensor]:
        """The sums so far; zeros where nothing was added."""
        if self.buckets is not None:
            return self.buckets.gradients
        if not self._gradients:
            return [torch.zeros_like(weight) for weight in self.newest.values()]
        return self._gradients

    @property
    def sums(self) -> list[Tensor]:
        """The sums so far, which a backward may add to in place; [] before the first gradient of
        an update. What it made of them is set in their place."""
        if not self._is_own:
            self._gradients = [gradient.clone() for gradient in self._gradients]
        return self._gradients

    @sums.setter
    def sums(self, found: list[Tensor]) -> None:
        self._gradients, self._is_own = found, True

    def add(self, gradients: dict[str, Tensor]) -> None:
        """Add one microbatch's gradients, whose tensors others may hold too."""
        if self.buckets is not None:
            self.buckets.add(gradients)
            return
        new = list(gradients.values())
        if not self._gradients or not new:
            self._gradients, self._is_own = new, False
        elif self._is_own:
            torch._foreach_add_(self._gradients, new)
        else:
            self._gradients, self._is_own = list(torch._foreach_add(self._gradients, new)), True

    def square(self, num_backwards: float) -> float:
        """The squared 2-norm of the mean over `num_backwards` gradients."""
        norms = [torch.linalg.vector_norm(g, dtype=_of_norm(g)) for g in self.gradients]
        return float(sum(float(norm) ** 2 for norm in norms)) / num_backwards**2

    def average(self, alpha: float, add_up: Sum) -> None:
        """Move the newest version and the reference of the pipelines towards each other."""
        if self.reference is None:
            raise AssertionError("the pipelines have no reference yet")
        average(list(self.exact.values()), list(self.reference.values()), alpha, add_up)
        self._round([*self.newest.values()])

    def step(
        self,
        version: int,
        num_backwards: float,
        awaited: Callable[[int], bool],
        scale: float = 1.0,
    ) -> None:
        """Make `version` from the newest with `scale` times the mean over `num_backwards`
        gradients; drop the versions that are not `awaited`."""
        in_place = not self._stash or not awaited(self._newest)
        new = self._updated(num_backwards / scale, in_place) if self._names else self.newest
        self._replace(version, new, awaited)

    def skip(self, version: int, awaited: Callable[[int], bool]) -> None:
        """Call the newest weights `version`, and forget the gradients."""
        self._replace(version, self.newest, awaited)

    def _replace(
        self, version: int, new: dict[str, Tensor], awaited: Callable[[int], bool]
    ) -> None:
        self._gradients = []
        self._updates += 1
        self._versions = {v: weights for v, weights in self._versions.items() if awaited(v)}
        self._versions[version] = new
        self._newest = version

    def _updated(self, divisor: float, in_place: bool) -> dict[str, Tensor]:
        old = list(self.newest.values())
        if not self._stash:
            old = [weight.data for weight in old]  # autograd must not notice
        rate, gradients = self._rate(self._updates), self._mean(divisor)
        with torch.no_grad():
            if self._masters is None:
                new = self._optimizer.update(old, gradients, in_place, rate)
            else:
                self._optimizer.update([*self._masters.values()], gradients, True, rate)
                new = old if in_place else [torch.empty_like(weight) for weight in old]
                self._round(new)
        return self.newest if in_place else self._named(new)

    def _round(self, weights: Sequence[Tensor]) -> None:
        """Put the masters, rounded, in the place of `weights`."""
        with torch.no_grad():
            for weight, master in zip(weights, (self._masters or {}).values(), strict=False):
                weight.copy_(master)

    def _mean(self, divisor: float) -> list[Tensor]:
        gradients = list(self.gradients)
        if divisor == 1:
            return gradients
        if self._is_own or self.buckets is not None:
            torch._foreach_div_(gradients, divisor)
            return gradients
        return list(torch._foreach_div(gradients, divisor))

    def _named(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        leaves = (tensor.requires_grad_() for tensor in tensors)
        return dict(zip(self._names, leaves, strict=True))


def _of_norm(gradient: Tensor) -> torch.dtype:
    """In which a norm is computed: what has eight bits would lose most of it."""
    return torch.promote_types(gradient.dtype, torch.float32)
