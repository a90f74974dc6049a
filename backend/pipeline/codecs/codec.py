"""How a message between stages is made smaller, and its bytes before anything runs.

How it is coded is not known here: `workers.runtime.messages.codecs` has the same names.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from backend.pipeline.actions import Flow


@dataclass(frozen=True, slots=True)
class Numbers:
    """A tensor of a message: `count` numbers of `width` bytes each, in `rows` of as many: along its
    first dimension, which is that of samples. 0 rows: it is a weight and has no samples.

    is_by_sample  whether each row is one sample of the microbatch, whose number is known
    new           rows of samples that pass the cut for the first time; of later epochs none
    """

    count: int
    width: int
    rows: int = 1
    is_by_sample: bool = True
    new: int = 0

    @property
    def bytes(self) -> int:
        return self.count * self.width

    @property
    def per_row(self) -> int:
        """Numbers of a row; there is one at least."""
        return self.count // self.rows


ByteRule = Callable[[Numbers], int]
"""Bytes of a tensor as it is sent, from what is known before it is made."""


@dataclass(frozen=True, slots=True)
class Codec:
    """One way to code what crosses a cut: activations, and their gradients on the way back.

    Only tensors that have a gradient are coded: others are indices, masks and lengths, which must
    come as they are. A tensor goes plain where its coded form would not be smaller.

    name     in plans, commands and documents
    title    for a person
    note     what it does, in a sentence
    is_close whether what is read again is less than 1 % of the tensor's norm away from it, however
             large its numbers, so that a planner may choose it: experience says that models learn
             as well
    is_layer whether it belongs to the model, as a layer would: trained and evaluated with it, the
             model gives other answers without it
    keeps_samples  whether both ends keep of every training sample what was read last, so that a
             sample must meet the same two ranks in every epoch; held-out samples go plain
    """

    name: str
    title: str
    note: str
    activation: ByteRule
    gradient: ByteRule
    is_close: bool = True
    is_layer: bool = False
    keeps_samples: bool = False

    def codes(self, flow: Flow, numbers: Numbers) -> bool:
        """Whether a tensor that has a gradient is coded on its way, once its samples are known."""
        return self._rule(flow)(replace(numbers, new=0)) < numbers.bytes

    def sent_bytes(self, flow: Flow, numbers: Numbers) -> int:
        """Bytes of such a tensor on the wire."""
        return self._rule(flow)(numbers) if self.codes(flow, numbers) else numbers.bytes

    def _rule(self, flow: Flow) -> ByteRule:
        return self.activation if flow is Flow.ACTIVATION else self.gradient
