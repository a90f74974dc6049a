"""How fast the profiled device codes messages."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class CodingSpeed:
    """Of one codec: the seconds that a tensor takes to be coded and to be read again, whatever its
    size, and per byte of it as it is plain. `flow` is what the tensor was; "", as in profiles of
    before, for both."""

    codec: str
    encode: float
    encode_per_byte: float
    decode: float
    decode_per_byte: float
    flow: Literal["", "activation", "gradient"] = ""

    def encoding(self, num_bytes: float) -> float:
        """Seconds of the sender for a tensor of so many bytes."""
        return self.encode + self.encode_per_byte * num_bytes

    def decoding(self, num_bytes: float) -> float:
        """Seconds of the receiver."""
        return self.decode + self.decode_per_byte * num_bytes

    def scaled(self, per_byte: float) -> "CodingSpeed":
        """The same with its seconds per byte times `per_byte`: a codec's work is bound by memory,
        what it takes whatever the size is not."""
        return replace(
            self,
            encode_per_byte=self.encode_per_byte * per_byte,
            decode_per_byte=self.decode_per_byte * per_byte,
        )
