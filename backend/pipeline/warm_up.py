"""How many forwards run before the first backward, of a pipeline that runs further ahead."""


def warm_up_of(in_flight: int, further: int) -> int:
    """w = d + a (d - 1) forwards before the first backward: d (`in_flight`) as in 1F1B, and a
    (`further`) more per hop, so that a message has as long as a microbatches compute. On a
    straight pipeline (p-s) + a (p-1-s)."""
    return in_flight + further * (in_flight - 1)
