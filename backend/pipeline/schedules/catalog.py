"""Every schedule by name. Adding one is its file and a line here."""

from backend.errors import InvalidInput
from backend.pipeline.schedules.afp import AFP
from backend.pipeline.schedules.custom import SYNTHESISED, WITHOUT_RULE
from backend.pipeline.schedules.double_buffered import DOUBLE_BUFFERED
from backend.pipeline.schedules.dualpipe_v import DUALPIPE_V
from backend.pipeline.schedules.flush import FLUSH
from backend.pipeline.schedules.forward_only import FORWARD_ONLY
from backend.pipeline.schedules.gpipe import GPIPE
from backend.pipeline.schedules.interleaved import INTERLEAVED
from backend.pipeline.schedules.interleaved_zero_bubble import INTERLEAVED_ZB
from backend.pipeline.schedules.local import LOCAL
from backend.pipeline.schedules.pipedream import NAIVE, PIPEDREAM, VERTICAL_SYNC
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.schedules.v_half import V_HALF
from backend.pipeline.schedules.v_min import V_MIN
from backend.pipeline.schedules.zb_v import ZB_V
from backend.pipeline.schedules.zero_bubble import ZB_H1, ZB_H2

SCHEDULES: dict[str, Schedule] = {
    member.name: member
    for member in (
        PIPEDREAM,
        VERTICAL_SYNC,
        NAIVE,
        DOUBLE_BUFFERED,
        FLUSH,
        AFP,
        INTERLEAVED,
        ZB_H1,
        ZB_H2,
        ZB_V,
        V_HALF,
        V_MIN,
        DUALPIPE_V,
        INTERLEAVED_ZB,
        GPIPE,
        LOCAL,
        FORWARD_ONLY,
    )
}


def schedule(name: str) -> Schedule:
    """The schedule called `name`, of the catalog or one without a rule ("custom": of an order that
    was read from a file); raises `InvalidInput` with the names that there are."""
    if name in WITHOUT_RULE:
        return WITHOUT_RULE[name]
    try:
        return SCHEDULES[name]
    except KeyError:
        raise InvalidInput(
            f"there is no schedule {name!r}",
            advice=f"Choose one of: {', '.join((*SCHEDULES, SYNTHESISED.name))}.",
        ) from None


def training_schedules() -> tuple[Schedule, ...]:
    """Those that a plan may use."""
    return tuple(member for member in SCHEDULES.values() if member.trains and member.consistent)


def plannable_schedules() -> tuple[Schedule, ...]:
    """Those that planning may be asked for by name: also the one whose order is found."""
    return (*training_schedules(), SYNTHESISED)


def executable_schedules() -> tuple[Schedule, ...]:
    """Those that the runtime of the workers trains with."""
    return tuple(member for member in training_schedules() if member.executable)
