"""The 1F1B order, written once: warm-up, steady state, drain.

ahead = 3:   F0 F1 F2 | B0 F3 B1 F4 B2 F5 | B3 B4 B5
"""

from collections.abc import Iterator, Sequence

from backend.pipeline.actions import Backward, Forward


def one_forward_one_backward(
    stage: int, microbatches: Sequence[int], ahead: int
) -> Iterator[Forward | Backward]:
    """`ahead` forwards before the first backward, then one of each (PipeDream, section 3.2)."""
    ahead = min(ahead, len(microbatches))
    yield from (Forward(stage, m) for m in microbatches[:ahead])
    for done, new in zip(microbatches, microbatches[ahead:], strict=False):
        yield Backward(stage, done)
        yield Forward(stage, new)
    yield from (Backward(stage, m) for m in microbatches[len(microbatches) - ahead :])
