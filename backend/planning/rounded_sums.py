"""A codec of sums: replicas give each other their gradients in numbers of two bytes.

How it is done is not known here: `workers.runtime.messages.rounded_sums`.
"""

from dataclasses import dataclass
from typing import Literal

from backend.profiles.state_precision import FULL, HALF


@dataclass(frozen=True, slots=True)
class RoundedSums:
    """Every replica gives its rounded gradients to each other one; all add up what all gave, in the
    gradients' own precision. Nothing is kept: each number goes in every update.

    numbers  the codec of messages that rounds so
    """

    numbers: Literal["bf16", "fp16"]

    @property
    def words(self) -> str:
        """As `read_codec_of_sums` reads it."""
        return self.numbers

    def check(self) -> None:
        """Any that can be written is one."""

    def sent_share(self, width: int) -> float:
        """The bytes of a gradient in numbers of so many bytes that go to each other replica, as a
        share of all its bytes."""
        return HALF / width

    def held(self, num_bytes: int, replicas: int) -> int:
        """Bytes of what all gave, until it is added up, of gradients of so many bytes."""
        return replicas * num_bytes * HALF // FULL
