"""Every schedule by name. Adding one is its file and a line here."""

from backend.errors import InvalidInput
from backend.pipeline.schedules.flush import FLUSH
from backend.pipeline.schedules.forward_only import FORWARD_ONLY
from backend.pipeline.schedules.gpipe import GPIPE
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.pipeline.schedules.schedule import Schedule

SCHEDULES: dict[str, Schedule] = {
    member.name: member
    for member in (
        PIPEDREAM,
        FLUSH,
        GPIPE,
        FORWARD_ONLY,
    )
}


def schedule(name: str) -> Schedule:
    """The schedule called `name`; raises `InvalidInput` with the names that there are."""
    try:
        return SCHEDULES[name]
    except KeyError:
        raise InvalidInput(
            f"there is no schedule {name!r}", advice=f"Choose one of: {', '.join(SCHEDULES)}."
        ) from None


def training_schedules() -> tuple[Schedule, ...]:
    """Those that a plan may use."""
    return tuple(member for member in SCHEDULES.values() if member.trains)
