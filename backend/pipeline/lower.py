"""From an order to a program: adds versions, sends, receives and all-reduces."""

from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.actions import Action, AllReduce, Compute, Recv, Send, Step
from backend.pipeline.program import Program
from backend.pipeline.routing import maker, makes, needs, taker
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape


def lower(schedule: Schedule, shape: Shape) -> Program:
    """The program of one segment.

    A receive stands just before the action that needs it, a send just after the action that
    made it, an all-reduce just before the step of a replicated stage. Raises `InvalidInput`
    when the shape has chunks and the schedule does not admit them.
    """
    if shape.chunks > 1 and not schedule.chunked:
        raise InvalidInput(
            f"schedule {schedule.name!r} runs one stage per position, not {shape.chunks}",
            advice="Use one chunk, or a schedule that interleaves.",
        )
    orders = tuple(tuple(schedule.order(seat, shape)) for seat in shape.seats)
    numbered = schedule.versions(shape, orders)
    return Program(
        schedule=schedule.name,
        shape=shape,
        ranks=tuple(tuple(_lowered(rank, order, shape)) for rank, order in enumerate(numbered)),
    )


def _lowered(rank: int, order: tuple[Compute, ...], shape: Shape) -> Iterator[Action]:
    for action in order:
        needed = needs(action, shape)
        if needed and (source := maker(needed, shape)) != rank:
            yield Recv(needed, source)
        if isinstance(action, Step) and len(group := shape.group_of(action.stage)) > 1:
            yield AllReduce(action.stage, group, action.version)
        yield action
        made = makes(action, shape)
        if made and (to := taker(made, shape)) != rank:
            yield Send(made, to)
