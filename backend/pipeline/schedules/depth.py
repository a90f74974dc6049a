"""How deep the pipeline is at a rank: all that a schedule's order and memory depend on."""

from dataclasses import dataclass
from typing import Protocol

from backend.pipeline.kept_order import KeptOrder

MANY = 1 << 40
"""Microbatches of a segment that is as long as one likes."""


class Depth(Protocol):
    """A rank of a shape, or a stage that a planner thinks of (`StageDepth`).

    in_flight    ceil(devices from this pipeline rank on / replicas here): what 1F1B has in flight
    depth        ceil(all devices / replicas here)
    batch_here   most microbatches of one batch that a rank here gets
    segment_here microbatches of the whole segment that a rank here gets
    num_batches  batches of the segment
    at_input     the warm-up of the input stage, over all its replicas
    run_ahead    further microbatches in flight per hop (see `Shape`)
    kept_order   what each rank computes in a batch, where that is kept (see `Shape`)
    """

    @property
    def in_flight(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def batch_here(self) -> int: ...
    @property
    def segment_here(self) -> int: ...
    @property
    def num_batches(self) -> int: ...
    @property
    def at_input(self) -> int: ...
    @property
    def replicas_here(self) -> int: ...
    @property
    def replica(self) -> int: ...
    @property
    def pipeline_rank(self) -> int: ...
    @property
    def pipeline_size(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def advance(self) -> int: ...
    @property
    def run_ahead(self) -> int: ...
    @property
    def kept_order(self) -> KeptOrder: ...


@dataclass(frozen=True, slots=True)
class StageDepth:
    """A stage of a plan that is not made yet: `Depth` says what the fields mean."""

    in_flight: int
    depth: int
    batch_here: int = 1
    segment_here: int = MANY
    num_batches: int = MANY
    at_input: int = 1
    replicas_here: int = 1
    replica: int = 0
    pipeline_rank: int = 0
    pipeline_size: int = 1
    chunks: int = 1
    advance: int = 1
    run_ahead: int = 0
    kept_order: KeptOrder = ()

    @staticmethod
    def of(
        before: int, replicas: int, after: int, batch: int = 1, advance: int = 1, run_ahead: int = 0
    ) -> "StageDepth":
        """A stage of `replicas` devices with `before` devices before it and `after` behind,
        under batches of `batch` microbatches. How far the input stage runs ahead depends on its
        replicas, which are not known: `at_input` is no more than that."""
        total = before + replicas + after
        return StageDepth(
            in_flight=1 - (-after // replicas),
            depth=-(-total // replicas),
            batch_here=-(-batch // replicas),
            at_input=total + run_ahead * after,
            replicas_here=replicas,
            advance=advance,
            run_ahead=run_ahead,
        )
