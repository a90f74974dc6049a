"""Orders that torch itself generates, as the text of its CSV."""

from types import SimpleNamespace

from torch.distributed.pipelining import schedules as torch_schedules


def one_f_one_b(p: int, m: int) -> str:
    """Of `Schedule1F1B`, whose table counts the forwards of the last rank from 1."""
    sizes = SimpleNamespace(_n_microbatches=m, pp_group_size=p, _num_stages=p)
    table = torch_schedules.Schedule1F1B._get_pipeline_order(sizes)
    rows = [[action for action in table[rank] if action][:-1] for rank in range(p)]
    forward = torch_schedules._ComputationType.FORWARD
    rows[-1] = [
        each._replace(microbatch_index=each.microbatch_index - 1)
        if each.computation_type is forward
        else each
        for each in rows[-1]
    ]
    return text(rows)


def interleaved(p: int, v: int, m: int) -> str:
    """Of `ScheduleInterleaved1F1B`, v chunks on each rank."""
    return text(interleaved_row(rank, p, v, m) for rank in range(p))


def zero_bubble_v(p: int, m: int) -> str:
    """Of `ScheduleZBVZeroBubble`."""
    sizes = SimpleNamespace(pp_group_size=p, _num_stages=2 * p, num_stages=2 * p)
    sizes._n_microbatches = m
    make = torch_schedules.ScheduleZBVZeroBubble._calculate_single_rank_operations
    return text(make(sizes, rank) for rank in range(p))


def interleaved_row(rank: int, p: int, v: int, m: int) -> list:
    """The actions of one rank."""
    warmup = min((v - 1) * p + 2 * (p - 1 - rank), m * v)
    steady = m * v - warmup
    return torch_schedules._get_1f1b_rank_ops(
        v,
        p,
        warmup,
        steady,
        m * v - steady,
        rank,
        lambda step: (step // p % v) * p + rank,
        lambda step: (v - 1 - (step - warmup) // p % v) * p + rank,
    )


def text(rows) -> str:
    return "\n".join(",".join(str(action) for action in row if action) for row in rows)
