"""How strongly the code of a run is kept apart from the machine that carries it."""

from enum import StrEnum


class SandboxLevel(StrEnum):
    """The strongest first; docs/guide/sandbox.md says what each one stops and what it does not."""

    BUBBLEWRAP = "bubblewrap"
    LIMITS = "limits"
    NONE = "none"

    def reaches(self, minimum: "SandboxLevel") -> bool:
        """Is it at least as strong as `minimum`?"""
        order = list(SandboxLevel)
        return order.index(self) <= order.index(minimum)
