"""Whether replicas that wait for each other in every forward and backward come to an end."""

from dataclasses import replace

from backend.pipeline.actions import Backward, Forward
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Plan

Compute = Forward | Backward


def meets(plan: Plan) -> bool:
    """Whether the replicas of every stage of `plan` can compute a batch side by side: all of them
    do the same in the same order, and none waits for what needs it first. The plan has no chunks,
    whole backwards, and batches that its replicas share evenly."""
    shape = replace(plan.shape(plan.batch), one_way=())
    program = lower(schedule(plan.schedule), shape)
    orders = [
        [each for each in program.actions(rank) if isinstance(each, Forward | Backward)]
        for rank in range(shape.num_ranks)
    ]
    groups = [[orders[rank] for rank in shape.group_of(s)] for s in range(shape.num_stages)]
    places, done = [0] * len(groups), set[tuple[bool, int, int]]()

    def is_ready(each: Compute) -> bool:
        stage, microbatch = each.stage, each.microbatch
        if isinstance(each, Forward):
            return stage == 0 or (True, stage - 1, microbatch) in done
        above = stage == shape.num_stages - 1 or (False, stage + 1, microbatch) in done
        return above and (True, stage, microbatch) in done

    is_moving = True
    while is_moving:
        is_moving = False
        for stage, group in enumerate(groups):
            while places[stage] < len(group[0]):
                nexts = [order[places[stage]] for order in group]
                if len({type(each) for each in nexts}) > 1 or not all(map(is_ready, nexts)):
                    break
                done |= {(isinstance(each, Forward), each.stage, each.microbatch) for each in nexts}
                places[stage], is_moving = places[stage] + 1, True
    return all(place == len(group[0]) for place, group in zip(places, groups, strict=True))
