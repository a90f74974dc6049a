"""How much planners may do for a question (`backend.planning.work`): about 3 s of one core for all
of them on 64 devices, and 10 s on 4,096."""

LIMITS, OTHERS = {"best": 7e5, "pipedream": 1e6, "pipedream-2bw": 5e5}, 2e5
"""Work of each planner, whether it is asked alone or among others: so it has one answer."""
FURTHER = 30
"""How many times of it where somebody asks for more."""
FEW, GROWTH = 64, 0.2
"""Devices up to which these hold, and the power of their number with which they grow beyond."""
SPARE, SPARED = 1.2e6, 8
"""What of this the others leave, `best` may do too on so many devices, and less on more: of few
they ask little, and small steps find most."""


def most_work(planner: str, devices: int) -> float:
    """What a planner may do on so many devices."""
    return float(LIMITS.get(planner, OTHERS) * max(1.0, devices / FEW) ** GROWTH)


def spare_work(devices: int, spent: float) -> float:
    """What `best` may do beyond its limit, where the others have `spent` so much."""
    return max(0.0, SPARE * min(1.0, SPARED / devices) - spent)
