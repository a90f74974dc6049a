"""The pattern that most orders share: some forwards ahead, then one of everything.

ahead=3          F0 F1 F2 | B0 F3 | B1 F4 | B2 F5 | B3 | B4 | B5
ahead=3, lag=1   F0 F1 F2 | I0 F3 | I1 W0 F4 | I2 W1 F5 | I3 W2 | I4 W3 | I5 W4 W5
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Forward


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The pattern of one seat.

    ahead   forwards before the first backward, where there are so many
    lag     None: backwards in one; else the weights' half follows so many backwards later
    flushes whether the pattern begins anew with every batch of the seat
    """

    ahead: int
    lag: int | None = None
    flushes: bool = True


def play(
    stage: int, microbatches: Sequence[int], rhythm: Rhythm
) -> Iterator[Forward | Backward | BackwardInput | BackwardWeight]:
    """The pattern over `microbatches`, once."""
    ahead, lag, count = min(rhythm.ahead, len(microbatches)), rhythm.lag, len(microbatches)
    yield from (Forward(stage, m) for m in microbatches[:ahead])
    for done, microbatch in enumerate(microbatches):
        if lag is None:
            yield Backward(stage, microbatch)
        else:
            yield BackwardInput(stage, microbatch)
            if done >= lag:
                yield BackwardWeight(stage, microbatches[done - lag])
        if done + ahead < count:
            yield Forward(stage, microbatches[done + ahead])
    if lag is not None:
        yield from (BackwardWeight(stage, m) for m in microbatches[max(0, count - lag) :])
