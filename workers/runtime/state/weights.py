"""The versions of one stage's weights, and the gradients that wait for the next one.

A step makes new tensors, so that a backward still in flight finds the version that its
forward read; where nobody awaits the old version, it is changed in place instead.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from backend.runs.request.learning_rate import RateFactor
from workers.runtime.messages.coding import SentBytes
from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.messages.peers import Peers, summed_bytes
from workers.runtime.state.exchanges.exchange import Exchange
from workers.runtime.state.moving_average import AVERAGE, MovingAverage
from workers.runtime.state.optimizers import Optimizer
from workers.runtime.state.shard import Shard, Slice, whole


def full(updates: int) -> float:
    """The learning rate as it is, always."""
    return 1.0


class Weights:
    """Version 0 is what the segment began with (`begin`); at first the given tensors themselves.

    `buckets` hold the gradients of a replicated stage. Without `stash` there is one version
    under every number: a step changes it under the graphs that are alive, as naive pipelining
    does (PipeDream, section 3.3), and their gradients belong to no version. With `masters`, by
    name, updates and averages are made on these, and versions are rounded from them. With a
    `shard` this rank keeps the optimizer's state, the masters and the moving average of its
    `slices` alone, and the replicas, who all hold the sum of the gradients, give each other what
    they made of theirs. The `moving` average follows the newest version, or what the pipelines
    have in common. Of several pipelines, which begin with the same weights, each has its
    `exchange`.
    """

    def __init__(
        self,
        initial: dict[str, Tensor],
        optimizer: Optimizer,
        buckets: Buckets | None = None,
        stash: bool = True,
        rate: RateFactor = full,
        masters: dict[str, Tensor] | None = None,
        shard: Shard | None = None,
        moving: MovingAverage | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._names = tuple(initial)
        self._optimizer, self._rate, self._stash = optimizer, rate, stash
        self.buckets = buckets
        self._shard, self._moving = shard, moving
        self.slices: tuple[Slice, ...] = self._shard.slices if self._shard else whole(initial)
        self.finest = {name: tensor.dtype for name, tensor in (masters or initial).items()}
        self.masters = None
        if masters is not None:
            self.masters = [each.copied(masters[each.name]) for each in self.slices]
        first = [*initial.values()]
        if self._shard:
            first = [weight.contiguous() for weight in first]
        self._versions = {0: self._named(first)}
        self._newest = 0
        self._updates = 0
        self._gradients: list[Tensor] = []
        self._exchange, self._exchanged = exchange, SentBytes()
        if exchange is not None:
            exchange.begin(list((masters or initial).values()))

    @property
    def exchange_state(self) -> dict[str, dict[str, Tensor]]:
        """What is kept to exchange by, by kind and name."""
        state = self._exchange.state if self._exchange else {}
        return {kind: dict(zip(self._names, each, strict=True)) for kind, each in state.items()}

    @property
    def exchanged(self) -> SentBytes:
        """Bytes that this rank has sent to other pipelines, beside those of sums of its gradients
        after every update."""
        return self._exchanged

    def restore_exchange(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Go on from what `exchange_state` gave; `restore` comes before."""
        assert self._exchange is not None, "a single pipeline exchanges nothing"
        named = {kind: [each[n] for n in self._names] for kind, each in state.items()}
        self._exchange.load_state(named)

    @property
    def optimizer_state(self) -> dict[str, list[Tensor]]:
        """As `Optimizer.state` gives it, for the `slices`, with the moving average."""
        return self._optimizer.state | (self._moving.state if self._moving else {})

    def restore(
        self,
        weights: dict[str, Tensor],
        optimizer_state: dict[str, list[Tensor]],
        updates: int,
        left_out: int = 0,
    ) -> None:
        """Go on from these weights, all of them, as exact as they are known, after so many
        updates, `left_out` of which were skipped. The state is that of the `slices`."""
        exact = {name: weights[name].to(self.finest[name]) for name in self._names}
        if self.masters is not None:
            self.masters = [each.of(exact[each.name]).clone() for each in self.slices]
        old = self.newest
        self._versions = {0: self._named([exact[n].to(old[n], copy=True) for n in self._names])}
        self._newest, self._updates = 0, updates
        rest = {kind: each for kind, each in optimizer_state.items() if kind != AVERAGE}
        self._optimizer.load_state(rest, updates - left_out)
        if self._moving is not None:
            self._moving.load_state(optimizer_state)

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
        """What is known best of the newest version: the masters, or the version itself. All
        replicas that share masters call it."""
        if self.masters is None:
            return self.newest
        if self._shard is None:
            return dict(zip(self._names, self.masters, strict=True))
        found = {n: torch.empty_like(w, dtype=self.finest[n]) for n, w in self.newest.items()}
        with torch.no_grad():
            self._shard.gather(self.masters, found)
        return found

    @property
    def evaluated(self) -> dict[str, Tensor]:
        """What is evaluated and saved, as the model computes with it: the moving average, else what
        the pipelines have in common, else the newest version. All replicas call it, while no
        gradient waits."""
        if self._moving is not None and self._moving.values is not None:
            found = {name: torch.empty_like(weight) for name, weight in self.newest.items()}
            with torch.no_grad():
                self._put(self._moving.values, found)
            return found
        common = self._exchange.common if self._exchange else None
        if common is None:
            return self.newest
        newest = self.newest.items()
        return {name: own.to(w) for (name, w), own in zip(newest, common, strict=True)}

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
        return self._gradients if self.buckets is None else self.buckets.sums

    @sums.setter
    def sums(self, found: list[Tensor]) -> None:
        if self.buckets is None:
            self._gradients = found
        else:
            self.buckets.sums = found

    def squares(self, num_backwards: float) -> tuple[float, float]:
        """The squared 2-norm of the mean over `num_backwards` gradients: of the weights that all
        replicas have, and of those that this one has to itself, slices of split layers."""
        norms = [torch.linalg.vector_norm(g, dtype=_of_norm(g)) for g in self.gradients]
        found, apart = [0.0, 0.0], self.buckets.apart if self.buckets else ()
        for name, norm in zip(self._names, norms, strict=True):
            found[name in apart] += float(norm) ** 2
        return found[0] / num_backwards**2, found[1] / num_backwards**2

    def exchange(self, peers: Peers) -> None:
        """Let the newest version learn from the other pipelines'."""
        assert self._exchange is not None, "a single pipeline exchanges nothing"
        exact = self.exact
        with torch.no_grad():
            self._exchange.exchange(list(exact.values()), self._updates, peers)
            plain = summed_bytes(list(self.newest.values()), len(peers.ranks))
            self._exchanged = SentBytes(self._exchange.sent, self._exchanged.plain + plain)
            common = self._exchange.common or list(exact.values())
            found = dict(zip(self._names, common, strict=True))
            self._follow([each.of(found[each.name]) for each in self.slices])
            if self.masters is None:
                return
            for name, weight in self.newest.items():
                weight.copy_(exact[name])
            for part, master in zip(self.slices, self.masters, strict=True):
                master.copy_(part.of(exact[part.name]))

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
        rate, named = self._rate(self._updates), dict(zip(self._names, old, strict=True))
        with torch.no_grad():
            gradients = self._mean(divisor)
            own = self.masters or [each.of(named[each.name]) for each in self.slices]
            if own:
                own = self._optimizer.update(own, gradients, in_place or bool(self.masters), rate)
            if self._exchange is None:
                self._follow(own)
            if self._shard is None and self.masters is None:
                new = own
            else:
                new = old if in_place else [torch.empty_like(weight) for weight in old]
                self._put(own, dict(zip(self._names, new, strict=True)))
        return self.newest if in_place else self._named(new)

    def _follow(self, own: Sequence[Tensor]) -> None:
        if self._moving is not None:
            self._moving.follow(own)

    def _put(self, own: Sequence[Tensor], into: Mapping[str, Tensor]) -> None:
        """Put what the replicas have for their slices into a version, rounded as it is."""
        if self._shard is not None:
            self._shard.gather(own, into)
            return
        for weight, master in zip(into.values(), own, strict=True):
            weight.copy_(master)

    def _mean(self, divisor: float) -> list[Tensor]:
        """For the `slices`."""
        found = dict(zip(self._names, self.gradients, strict=True))
        gradients = [each.of(found[each.name]) for each in self.slices]
        if divisor != 1 and gradients:
            torch._foreach_div_(gradients, divisor)
        return gradients

    def _named(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        leaves = (tensor.requires_grad_() for tensor in tensors)
        return dict(zip(self._names, leaves, strict=True))


def _of_norm(gradient: Tensor) -> torch.dtype:
    """In which a norm is computed: what has eight bits would lose most of it."""
    return torch.promote_types(gradient.dtype, torch.float32)
