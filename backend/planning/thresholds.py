"""The codec of sums: of the gradients of a stage's replicas the largest alone are sent.

Source: Gupta et al., "Training Recommender Systems at Scale: Communication-Efficient Model and Data
Parallelism", KDD 2021, arXiv 2010.08899 (DCT in data parallelism). How it is done is not known
here: `workers.runtime.messages.thresholds`.
"""

from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.planning.rule_text import rule_words, with_settings

NAME = "dct"
SETTINGS = ("keep", "every")
TITLE = "Largest gradients alone (DCT)"
LEAST = 128
"""Numbers of a tensor from which on it has a threshold; smaller ones are sent whole (as in a public
code of the method)."""
MOST_EVERY = 1_000_000
"""Updates between two thresholds (a bound of ours, so that a wrong number is told)."""
PLACE_BYTES = 4
"""Of the place of a number among those of a bucket."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Of each tensor's gradient every replica sends what is above a threshold, and adds the rest
    to the next one.

    keep   the share of a tensor that is sent when its threshold is made: its k-th largest
    every  updates of a stage after which thresholds are made anew
    """

    keep: float = 0.005
    every: int = 1000

    @property
    def words(self) -> str:
        """As `read_thresholds` reads it: "dct:keep=0.005,every=1000"."""
        return rule_words(NAME, self, SETTINGS)

    def check(self) -> None:
        """Raises `InvalidInput` where it is none."""
        if not 0 < self.keep <= 1:
            raise InvalidInput(
                f"a share of {self.keep:g} of the gradients is not above 0 and up to 1",
                "Try 0.005.",
            )
        if not 1 <= self.every <= MOST_EVERY:
            raise InvalidInput(
                f"thresholds that are made every {self.every} updates", f"Give 1 to {MOST_EVERY}."
            )

    def kept(self, numbers: int) -> int:
        """How many of a tensor are sent when its threshold is made, ties aside: one at least."""
        return max(1, int(numbers * self.keep))

    def sent_share(self, width: int) -> float:
        """The bytes of a gradient in numbers of so many bytes that go to each other replica, as a
        share of all its bytes: values and places, or all values where that is no more."""
        return min(1.0, self.keep * (width + PLACE_BYTES) / width)


def read_thresholds(text: str) -> Thresholds | None:
    """The codec of sums of a text such as "dct:keep=0.01" or "dct"; None of an empty one. Raises
    `InvalidInput`."""
    name, _, rest = text.strip().partition(":")
    if not name:
        return None
    if name != NAME:
        raise InvalidInput(f"no codec of sums {name!r}", f"Try {Thresholds().words}.")
    found = with_settings(Thresholds(), rest, SETTINGS, TITLE, Thresholds().words)
    found.check()
    return found


def check_thresholds(chosen: Thresholds | None, most_replicas: int, sharded: bool) -> None:
    """Raise `InvalidInput` where a plan whose stages have at most so many replicas, with `sharded`
    state or without, cannot have this codec of sums."""
    if chosen is None:
        return
    chosen.check()
    if most_replicas == 1:
        raise InvalidInput(
            "no stage has several replicas, so there are no sums of gradients to be coded",
            "Leave the codec of sums out, or use a plan that replicates a stage.",
        )
    if sharded:
        raise InvalidInput(
            "a codec of sums needs every replica to have all weights' updates, and with sharded "
            "state each makes a part",
            "Leave the codec of sums out, or do not shard the state.",
        )
