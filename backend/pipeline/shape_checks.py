"""Which counts are a shape: what `Shape` refuses, with the numbers."""

from collections.abc import Sequence

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import V_CHUNKS, Placement
from backend.pipeline.shares import Shares, shares_text

MOST_RUN_AHEAD = 64
"""Further microbatches per hop (a bound of ours, so that a wrong number is told)."""
MOST_OF_A_ROUND = 4096
"""Microbatches of a round (a bound of ours, so that a wrong number is told)."""

MOST_FORWARDS = 5_000_000
"""Forwards of a program (a bound of ours: with what belongs to them they take gigabytes)."""


def check_size(num_stages: int, num_microbatches: int) -> None:
    """Raises `InvalidInput` where a program has more than `MOST_FORWARDS`."""
    if num_stages * num_microbatches > MOST_FORWARDS:
        raise InvalidInput(
            f"{num_microbatches:,} microbatches through {num_stages:,} stages are no program that "
            f"fits into memory: {MOST_FORWARDS:,} forwards are the most",
            advice="Use fewer microbatches or fewer stages.",
        )


def check_chunks(replicas: Sequence[int], chunks: int, placement: Placement) -> None:
    """Raises `InvalidInput` where a pipeline rank is empty or its chunks cannot lie so."""
    if not replicas or min(replicas) < 1 or chunks < 1:
        raise InvalidInput(f"shape {replicas} x {chunks} has an empty pipeline rank")
    if placement is Placement.V and chunks != V_CHUNKS:
        raise InvalidInput(
            f"a V has {V_CHUNKS} chunks on each pipeline rank, not {chunks}",
            advice=f"Use {V_CHUNKS} chunks, or lay the stages round the ranks.",
        )


def check_pipelines(num_pipelines: int, advance: int, run_ahead: int) -> None:
    """Raises `InvalidInput` where they are none."""
    if num_pipelines < 1 or advance < 0:
        raise InvalidInput(f"{num_pipelines} pipelines with an advance of {advance} are no shape")
    if not 0 <= run_ahead <= MOST_RUN_AHEAD:
        raise InvalidInput(
            f"a run ahead of {run_ahead} is no number of microbatches per hop",
            advice=f"Give 0 to {MOST_RUN_AHEAD}.",
        )


def check_batches(num_microbatches: int, batch: int, num_pipelines: int) -> None:
    """Raises `InvalidInput` where batches or the pipelines' parts of them are not whole."""
    if batch < 1 or num_microbatches < batch or num_microbatches % batch:
        raise InvalidInput(f"{num_microbatches} microbatches are not whole batches of {batch}")
    if num_microbatches // batch % num_pipelines:
        raise InvalidInput(
            f"{num_microbatches // batch} batches cannot be shared evenly by "
            f"{num_pipelines} pipelines"
        )


def check_shares(shares: Sequence[Shares], replicas: Sequence[int], is_plain: bool) -> None:
    """Raises `InvalidInput` where shares are not of these replicas, per pipeline rank, or the
    shape is not plain: one chunk, one pipeline, no run ahead."""
    if shares and len(shares) != len(replicas):
        raise InvalidInput(
            f"{len(shares)} pipeline ranks have shares, and there are {len(replicas)}"
        )
    for pipeline_rank, (own, count) in enumerate(zip(shares, replicas, strict=False)):
        if own and (len(own) != count or min(own) < 1 or sum(own) > MOST_OF_A_ROUND):
            raise InvalidInput(
                f"shares {shares_text(own)} are not those of the {count} replicas at pipeline rank "
                f"{pipeline_rank}",
                advice="Give each replica 1 or more microbatches of a round, and a round at most "
                f"{MOST_OF_A_ROUND}.",
            )
    if shares and not is_plain:
        raise InvalidInput(
            "unequal shares of replicas are not for several chunks, several pipelines or a run "
            "ahead",
            advice="Use one chunk and one pipeline that runs ahead by 0, or equal shares.",
        )


def check_rounds(num_microbatches: int, replicas: Sequence[int], rounds: Sequence[int]) -> None:
    """Raises `InvalidInput` where the microbatches of a pipeline are not whole rounds."""
    for pipeline_rank, (count, own) in enumerate(zip(replicas, rounds, strict=True)):
        if num_microbatches % own:
            of = f" in rounds of {own}" if own != count else ""
            raise InvalidInput(
                f"{num_microbatches} microbatches cannot be shared evenly by the {count} replicas "
                f"at pipeline rank {pipeline_rank}{of}"
            )
