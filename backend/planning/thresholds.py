"""A codec of sums: of the gradients of a stage's replicas the largest alone are sent.

Source: Gupta et al., "Training Recommender Systems at Scale: Communication-Efficient Model and Data
Parallelism", KDD 2021, arXiv 2010.08899 (DCT in data parallelism). How it is done is not known
here: `workers.runtime.messages.thresholds`.
"""

from dataclasses import dataclass

from pydantic import ConfigDict

from backend.errors import InvalidInput
from backend.planning.rule_text import rule_words

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

    __pydantic_config__ = ConfigDict(extra="forbid")  # another codec's fields are none of these

    keep: float = 0.005
    every: int = 1000

    @property
    def words(self) -> str:
        """As `read_codec_of_sums` reads it: "dct:keep=0.005,every=1000"."""
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

    def held(self, num_bytes: int, replicas: int) -> int:
        """Bytes of what a replica has not sent, of gradients of so many bytes."""
        return num_bytes
