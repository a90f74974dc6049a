"""What a visitor may not do: buttons that cannot be pressed and say why."""

from app import services
from backend.people.rights import Right


def why_not(project: int | None = None, right: Right = Right.EDIT) -> str | None:
    """None where the visitor may, by the rule that the services go by; else what to tell them.
    `project` is that of the thing that would change, by default where new things go."""
    return services.backend().access.why_not(right, project)
