"""Zero bubble, H1 and H2: the weights' half of a backward waits until there is nothing else.

    H1, pipeline rank 1 of 3   F0 F1 | I0 F2 | I1 W0 F3 | I2 W1 F4 | I3 W2 | I4 W3 | W4 step
    H2, pipeline rank 1 of 3   F0 F1 F2 | I0 F3 | I1 F4 | I2 W0 | I3 W1 | I4 W2 | W3 W4 step

Replicas are ours: where the paper counts pipeline ranks before and after a rank, rounds of that
rank are counted. Activations are held until the weights' half: warm-up + delay is the same at
every pipeline rank, p for H1 and 2p - 1 for H2.
"""

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.flush import warm_up
from backend.pipeline.schedules.schedule import Schedule

SOURCE = "Qi et al., ICLR 2024, arXiv 2401.10241, section 2"


def delay(at: Depth) -> int:
    """One backward later per pipeline rank before."""
    return at.depth - at.in_flight


def twice_the_warm_up(at: Depth) -> int:
    """As many forwards as the pipeline that starts here is deep, there and back."""
    return 2 * at.in_flight - 1


def twice_the_delay(at: Depth) -> int:
    """Two backwards later per pipeline rank before."""
    return 2 * delay(at)


ZB_H1 = Schedule(name="zb-h1", title="Zero bubble H1", source=SOURCE, warm_up=warm_up, delay=delay)
ZB_H2 = Schedule(
    name="zb-h2",
    title="Zero bubble H2",
    source=SOURCE,
    warm_up=twice_the_warm_up,
    delay=twice_the_delay,
)
