"""What other trainers call the schedules of the catalog."""

from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule


@dataclass(frozen=True, slots=True)
class NamesElsewhere:
    """None where a trainer has no such schedule.

    torch      of `torch.distributed.pipelining.schedules.get_schedule_class`, with the same order;
               another order is handed on as CSV
    megatron   in words: Megatron-Core chooses by the layout
    deepspeed  the class of `deepspeed.runtime.pipe.schedule`
    """

    torch: str | None = None
    megatron: str | None = None
    deepspeed: str | None = None


NAMES: dict[str, NamesElsewhere] = {
    "gpipe": NamesElsewhere(torch="GPipe"),
    "1f1b-flush": NamesElsewhere("1F1B", "1F1B", "TrainSchedule"),
    "interleaved": NamesElsewhere("Interleaved1F1B", "interleaved 1F1B"),
    "afp": NamesElsewhere(),
    "zb-h1": NamesElsewhere(),
    "zb-h2": NamesElsewhere(),
    "zb-v": NamesElsewhere("ZBVZeroBubble"),
    "dualpipe-v": NamesElsewhere("DualPipeV"),
    "v-half": NamesElsewhere(),
    "v-min": NamesElsewhere(),
    "interleaved-zb": NamesElsewhere("InterleavedZeroBubble"),
}
"""Every schedule that trains and drains; no other trainer keeps versions of weights."""


def names_elsewhere(name: str) -> NamesElsewhere:
    """Those of a schedule: one without a rule has none. Raises `InvalidInput` for one whose weights
    have versions."""
    if schedule(name).kept:
        return NamesElsewhere()
    if name not in NAMES:
        raise InvalidInput(
            f"schedule {name!r} keeps versions of the weights ({schedule(name).title}), which no "
            "other trainer does",
            "Plan under a schedule that drains before each update, such as 1f1b-flush.",
        )
    return NAMES[name]
