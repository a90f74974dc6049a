"""Every random operation of a factory draws with a seed of its own.

A tensor's first values then depend on the run's seed and on the operation's number among the
random ones, and not on what was drawn before: a rank may leave out what it does not own.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from workers.definitions.seeds import derived

Operation = Callable[..., Any]


class Seeded(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Inside, the n-th random operation draws with the seed that `seed` and n give."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed, self._draws = seed, 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch asks: to be skipped, it would import its compiler, a second of each rank."""
        return False

    def own_seed(self, operation: Any) -> int | None:
        """The seed of an operation that is run now; None where it draws nothing."""
        if torch.Tag.nondeterministic_seeded not in operation.tags:
            return None
        self._draws += 1
        return derived(self._seed, self._draws)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return performed(func, args, kwargs or {}, self.own_seed(func))


def performed(
    operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int | None
) -> Any:
    """The operation's result. A generator that the factory passed counts by its own first seed;
    the generators themselves are as before."""
    if seed is None:
        return operation(*args, **kwargs)
    if (own := kwargs.get("generator")) is not None:
        seed = derived(own.initial_seed(), seed)
        kwargs = kwargs | {"generator": torch.Generator(own.device).manual_seed(seed)}
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
    try:
        return operation(*args, **kwargs)
    finally:
        torch.set_rng_state(before)


def built(make: Callable[[], nn.Module], mode: Seeded, seed: int) -> nn.Module:
    """The model that `make` builds inside `mode`; what it draws elsewhere begins at `seed`."""
    torch.manual_seed(seed)
    random.seed(seed)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(seed % 2**32)
    with mode:
        return make()


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The whole model with the first values that `seed` gives."""
    return built(make, Seeded(seed), seed)
