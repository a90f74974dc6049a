"""Ways to need less memory that cost time, and whether a plan takes them."""

from dataclasses import dataclass, replace
from enum import StrEnum

from backend.planning.plan import Plan


class MemorySaving(StrEnum):
    """Whether one way is taken: where a plan does not fit without, never, or always."""

    AUTO = "auto"
    NEVER = "never"
    ALWAYS = "always"

    @property
    def tries(self) -> tuple[bool, ...]:
        """What is predicted until a plan fits the memory."""
        match self:
            case MemorySaving.AUTO:
                return (False, True)
            case MemorySaving.NEVER:
                return (False,)
            case MemorySaving.ALWAYS:
                return (True,)


@dataclass(frozen=True, slots=True, order=True)
class Savings:
    """The ways that a plan takes; the fields are those of a `Plan`."""

    recompute: bool = False
    shard_state: bool = False

    def of(self, plan: Plan) -> Plan:
        """`plan` with these. One whose stages are all single shares no state."""
        shares = self.shard_state and max(plan.partition.replicas) > 1
        return replace(plan, recompute=self.recompute, shard_state=shares)
