"""The verifier for long programs: the same faults, found fast where there are none."""

import numpy as np

from backend.pipeline.columnar.clock import walk
from backend.pipeline.columnar.layout import layout
from backend.pipeline.columnar.simulate import Times, simulate_table
from backend.pipeline.columnar.soundness import is_sound
from backend.pipeline.columnar.table import Table, unpack
from backend.pipeline.faults import Fault
from backend.pipeline.message_rules import wait_faults
from backend.pipeline.simulate import Durations
from backend.pipeline.verify import ProgramUnsound, verify


def verify_table(table: Table) -> tuple[Fault, ...]:
    """What `verify` says of the same program."""
    if not is_sound(table):
        return verify(unpack(table))
    plan = layout(table)
    if plan is not None:
        nothing = np.zeros(len(plan.rows))
        if not walk(plan, nothing, nothing).stuck:
            return ()
    return tuple(wait_faults(unpack(table)))


def run_table(table: Table, durations: Durations) -> Times:
    """`check` and `simulate` in one: raises `ProgramUnsound` where a rule is broken, and
    `ProgramStuck` where that is all and the program waits for ever."""
    if not is_sound(table) and (faults := verify(unpack(table))):
        raise ProgramUnsound(faults)
    return simulate_table(table, durations)
