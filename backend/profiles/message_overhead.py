"""What a message costs the processors at both of its ends."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field


@dataclass(frozen=True, slots=True)
class MessageOverhead:
    """What a message costs the processors of its ranks, however long it is on the link: seconds,
    and seconds per byte (o and G of LogGP), at the sender and at the receiver."""

    send: Annotated[float, Field(alias="posting")]
    send_per_byte: Annotated[float, Field(alias="posting_byte")]
    receive: Annotated[float, Field(alias="taking")]
    receive_per_byte: Annotated[float, Field(alias="taking_byte")]

    def sending(self, num_bytes: float) -> float:
        """Seconds of the sender."""
        return self.send + self.send_per_byte * num_bytes

    def receiving(self, num_bytes: float) -> float:
        """Seconds of the receiver."""
        return self.receive + self.receive_per_byte * num_bytes
