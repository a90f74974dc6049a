"""What a visitor may not do: buttons that cannot be pressed and say why."""

from typing import TypedDict

from app import services
from backend.people.rights import Right


def why_not(project: int | None = None, right: Right = Right.EDIT) -> str | None:
    """None where the visitor may, by the rule that the services go by; else what to tell them.
    `project` is that of the thing that would change, by default where new things go."""
    return services.backend().access.why_not(right, project)


class Closed(TypedDict):
    """How a button or a menu says that it may not be used."""

    disabled: bool
    help: str | None


def closed(reason: str | None) -> Closed:
    """The words of a widget that is closed for a reason; open where there is none."""
    return {"disabled": reason is not None, "help": reason}
