"""Groups of replicas that hand microbatches on among themselves alone, and one of them as a shape.

With 4 and 8 replicas microbatch k goes to replicas k mod 4 and k mod 8. What is handed on keeps
k mod 4, and so there are groups of a replica and two, or two groups of twice as many:

    k mod 4 = 0    0 | 0 4        k mod 4 = 0, 1    0 1 | 0 1 4 5
    k mod 4 = 1    1 | 1 5        k mod 4 = 2, 3    2 3 | 2 3 6 7
"""

from dataclasses import dataclass, replace
from math import gcd

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """`count` groups of the replicas of each stage: number h has those of the microbatches with
    k mod `modulus` from h * modulus / count on. Each is like the others but for its devices."""

    count: int = 1
    modulus: int = 1

    @property
    def width(self) -> int:
        """Remainders of a group."""
        return self.modulus // self.count

    def one(self, shape: Shape, is_batched: bool) -> Shape:
        """The shape of the first group of `shape`; its updates apply its part of a batch, where
        they apply batches."""
        return (
            shape
            if self.count == 1
            else replace(
                shape,
                replicas=tuple(each // self.count for each in shape.replicas),
                num_microbatches=shape.num_microbatches // self.count,
                batch=shape.batch // self.count if is_batched else shape.batch,
            )
        )

    def all(self, shape: Shape, is_batched: bool) -> Shape:
        """The shape of which `shape` is that of the first group."""
        return (
            shape
            if self.count == 1
            else replace(
                shape,
                replicas=tuple(each * self.count for each in shape.replicas),
                num_microbatches=shape.num_microbatches * self.count,
                batch=shape.batch * self.count if is_batched else shape.batch,
            )
        )

    def ranks(self, shape: Shape) -> tuple[int, ...]:
        """Of the ranks of the first group of `shape` which ones they are there, in order."""
        every = zip(shape.first_ranks, shape.replicas, strict=True)
        return tuple(
            first + turn + remainder
            for first, replicas in every
            for turn in range(0, replicas, self.modulus)
            for remainder in range(self.width)
        )


ALL = ReplicaGroups()
"""All replicas are one group."""


def possible_groups(name: str, shape: Shape) -> list[ReplicaGroups]:
    """The groups into which replicas under a schedule can be parted, the most first: none where
    replicas have shares, several chunks or an order of their own, or pipelines exchange. Stages of
    several replicas keep several, as they sum their gradients."""
    rule = schedule(name)
    is_plain = shape.chunks == shape.num_pipelines == 1 and not (shape.shares or shape.kept_order)
    most = gcd(*shape.replicas, *((shape.batch,) if rule.batched else ()))
    if most == 1 or not is_plain or rule.order is not None:
        return []
    divisors = [each for each in range(most, 1, -1) if most % each == 0]
    counts = [each for each in divisors if 2 * each <= min(shape.replicas)]
    return [ReplicaGroups(n, own) for n in counts for own in divisors if own % n == 0]
