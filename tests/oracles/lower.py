"""From an order to a program: adds versions, messages, collectives and recomputation."""

from collections.abc import Iterator
from dataclasses import replace

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    Compute,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.routing import consumer, makes, needs, producer
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates, Shape
from tests.oracles.order import order
from tests.oracles.program import Program
from tests.oracles.versions import Orders, policy


def lower(schedule: Schedule, shape: Shape) -> Program:
    """The program of one segment.

    A receive stands just before the action that needs it, a send just after the action that
    made it, an all-reduce just before the step of a replicated stage, an averaging just after
    the step of several pipelines. A recomputation stands before the receive of its gradient, so
    that it may fill the wait. Raises `InvalidInput` for a shape that the schedule refuses.
    """
    schedule.check(shape)
    if schedule.local:
        shape = replace(shape, one_way=tuple(range(shape.num_stages - 1)))
    return complete(
        schedule,
        shape,
        tuple(tuple(order(schedule, coordinates)) for coordinates in shape.coordinates),
    )


def complete(schedule: Schedule, shape: Shape, orders: Orders) -> Program:
    """The program of given orders, by the version policy of `schedule`."""
    numbered = policy(schedule)(shape, orders)
    return Program(
        schedule=schedule.name,
        shape=shape,
        ranks=tuple(
            tuple(_lowered(coordinates, computes, shape, schedule.local))
            for coordinates, computes in zip(shape.coordinates, numbered, strict=True)
        ),
    )


def _lowered(
    coordinates: RankCoordinates, computes: tuple[Compute, ...], shape: Shape, local: bool
) -> Iterator[Action]:
    for action in computes:
        yield from _before(coordinates, action, shape, local)
        yield action
        yield from _after(coordinates, action, shape)


def _before(
    coordinates: RankCoordinates, action: Compute, shape: Shape, local: bool
) -> Iterator[Action]:
    is_asked = local or action.stage not in shape.one_way
    if shape.recompute and is_asked and isinstance(action, Backward | BackwardInput):
        yield Recompute(action.stage, action.microbatch, action.version)
    needed = needs(action, shape)
    if needed and (source := producer(needed, shape)) != coordinates.rank:
        yield Recv(needed, source)
    if (
        isinstance(action, Step)
        and len(group := shape.group_of(action.stage, coordinates.pipeline)) > 1
    ):
        yield AllReduce(action.stage, group, action.version)


def _after(coordinates: RankCoordinates, action: Compute, shape: Shape) -> Iterator[Action]:
    made = makes(action, shape)
    if made and (to := consumer(made, shape)) != coordinates.rank:
        yield Send(made, to)
    if isinstance(action, Step) and shape.num_pipelines > 1:
        yield Average(action.stage, shape.sharing(coordinates.rank), action.version)
