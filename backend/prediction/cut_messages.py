"""What crosses the cuts of a partition: bytes plain and coded, and seconds of coding."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.catalog import codec
from backend.pipeline.codecs.codec import Numbers
from backend.planning.plan import Partition
from backend.profiles.coding_speed import CodingSpeed
from backend.profiles.crossing import Crossing
from backend.profiles.profile import Profile


@dataclass(frozen=True)
class CutMessages:
    """The messages of `partition`; `codecs` are those of the cut behind each stage (() = none).
    `ordered` has its layers as the stages count them. With `local` losses no gradient goes back."""

    ordered: Profile
    partition: Partition
    codecs: tuple[str, ...] = ()
    local: bool = False

    def bytes(self, message: Message) -> int:
        """On the wire: an activation leaves behind its stage, a gradient in front."""
        return self.sent[message.flow][message.cut]

    def plain_bytes(self, message: Message) -> int:
        """Without a codec."""
        return self.plain[message.flow][message.cut]

    @cached_property
    def plain(self) -> dict[Flow, tuple[int, ...]]:
        """Bytes one way over the cut behind each stage, the last included; 0 where the next one is
        on the same rank, to which nothing is sent."""
        graph = self.ordered.graph
        back = (0,) * len(graph.gradient_bytes) if self.local else graph.gradient_bytes
        ways = {Flow.ACTIVATION: graph.cut_bytes, Flow.GRADIENT: back}
        return {
            flow: tuple(
                cuts[stage.stop - 1] if self.partition.crosses(number) else 0
                for number, stage in enumerate(self.partition.stages)
            )
            for flow, cuts in ways.items()
        }

    @cached_property
    def sent(self) -> dict[Flow, tuple[int, ...]]:
        """The same as they are coded."""
        return {
            flow: tuple(size - self._saved(cut, flow) for cut, size in enumerate(plain))
            for flow, plain in self.plain.items()
        }

    def _saved(self, cut: int, flow: Flow) -> int:
        if self.local and flow is Flow.GRADIENT:
            return 0
        return sum(
            numbers.bytes - codec(self.codecs[cut]).sent_bytes(flow, numbers)
            for numbers in self._coded(cut, flow)
        )

    def _coded(self, cut: int, flow: Flow) -> Iterator[Numbers]:
        """The tensors that are coded over the cut behind stage `cut`."""
        is_coded = cut < len(self.codecs) and self.partition.crosses(cut)
        if is_coded and (name := self.codecs[cut]):
            layer = self.partition.stages[cut].stop - 1
            for tensor in self.ordered.graph.tensors:
                is_there = tensor.producer <= layer < max(tensor.readers)
                numbers = numbers_of(tensor, self.ordered.microbatch)
                if is_there and tensor.has_gradient and codec(name).codes(flow, numbers):
                    yield numbers

    def kept_per_sample(self, stage: int) -> int:
        """Bytes that codecs let a stage keep of each training sample, of both cuts beside it."""
        keeping = (
            cut
            for cut in range(max(0, stage - 1), min(stage + 1, len(self.codecs)))
            if self.codecs[cut] and codec(self.codecs[cut]).keeps_samples
        )
        kept = (n.bytes for cut in keeping for n in self._coded(cut, Flow.ACTIVATION))
        return sum(kept) // self.ordered.microbatch

    def sending(self, cut: int, flow: Flow) -> float:
        """Profiled seconds in which the sender codes and posts a message; 0 where none crosses."""
        if not self._is(cut, flow):
            return 0.0
        speed, overhead = self._speed(cut, flow), self.ordered.message_overhead
        coding = sum(speed.encoding(each.bytes) for each in self._coded(cut, flow)) if speed else 0
        return coding + (overhead.sending(self.sent[flow][cut]) if overhead else 0.0)

    def receiving(self, cut: int, flow: Flow) -> float:
        """Profiled seconds in which the receiver takes one in and reads it."""
        if not self._is(cut, flow):
            return 0.0
        speed, overhead = self._speed(cut, flow), self.ordered.message_overhead
        reading = sum(speed.decoding(each.bytes) for each in self._coded(cut, flow)) if speed else 0
        return reading + (overhead.receiving(self.sent[flow][cut]) if overhead else 0.0)

    def _is(self, cut: int, flow: Flow) -> bool:
        """Whether there are messages over the cut behind stage `cut`."""
        is_quiet = flow is Flow.GRADIENT and self.partition.crosses(cut) and self.one_way[cut]
        return self.partition.crosses(cut) and not is_quiet

    def _speed(self, cut: int, flow: Flow) -> CodingSpeed | None:
        """None where nothing is coded, or the profile does not tell how fast."""
        return self.ordered.coding_speed(self.codecs[cut], flow) if self.codecs else None

    @cached_property
    def one_way(self) -> tuple[bool, ...]:
        """Per stage whether no gradient comes back to it."""
        ends = self.ordered.graph.one_way
        return tuple(self.local or ends[stage.stop - 1] for stage in self.partition.stages)


def numbers_of(tensor: Crossing, microbatch: int) -> Numbers:
    """What a codec sees of a tensor. Where nobody told its rows, they are the samples."""
    count = round(tensor.bytes / tensor.number_bytes)
    rows = microbatch if tensor.rows is None else tensor.rows
    rows = rows if rows == 0 or count % rows == 0 else 1
    return Numbers(count, tensor.number_bytes, rows, rows == microbatch)
