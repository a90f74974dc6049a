"""What a forward may hold that is no operation: gradients of its own, and activations that are
computed again in the backward."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from torch import fx
from torch.autograd import Function
from torch.utils import checkpoint
from torch.utils._pytree import tree_leaves

TRACED_AWAY = (
    "torch.utils.checkpoint in the forward is traced away: its activations are kept. Switch on "
    "the plan's recomputation where memory is short; it computes whole stages again."
)


@dataclass(slots=True)
class OwnFunctions:
    """What a trace has met: whether activations would have been computed again."""

    has_checkpoints: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        return (TRACED_AWAY,) if self.has_checkpoints else ()


@contextmanager
def own_functions() -> Iterator[OwnFunctions]:
    """Inside, a function with a gradient of its own is one operation for stand-ins, and what
    torch.utils.checkpoint is given runs as if it were not there."""
    met = OwnFunctions()
    usual: Callable[..., Any] = Function.__dict__["apply"].__func__

    def apply(cls: type[Function], *args: Any, **named: Any) -> Any:
        if cls is checkpoint.CheckpointFunction:
            met.has_checkpoints = True
            return args[0](*args[2:])
        proxies = (each for each in tree_leaves((args, named)) if isinstance(each, fx.Proxy))
        if (proxy := next(proxies, None)) is None:
            return usual(cls, *args, **named)
        return proxy.tracer.create_proxy("call_function", _applied(cls), args, named)

    def without(*_: Any, **__: Any) -> Iterator[None]:
        met.has_checkpoints = True
        yield

    with (
        patch.object(Function, "apply", classmethod(apply)),
        patch.object(checkpoint, "_checkpoint_without_reentrant_generator", without),
    ):
        yield met


@lru_cache(maxsize=256)
def _applied(cls: type[Function]) -> Callable[..., Any]:
    def applied(*args: Any, **named: Any) -> Any:
        function: Any = cls
        return function.apply(*args, **named)

    applied.__name__ = cls.__name__
    return applied
