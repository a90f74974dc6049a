"""Profiles as they are stored."""

from dataclasses import dataclass
from datetime import datetime

from backend.errors import InvalidInput
from backend.people.project import DEFAULT_PROJECT
from backend.profiles.profile import Profile


class ProfileInUse(InvalidInput):
    """Plans need a profile that is to be deleted; the message names them."""


MAX_NAME = 120


def profile_title(name: str) -> str:
    """`name` without blanks around it; "" takes the name away. Raises `InvalidInput`."""
    title = name.strip()
    if len(title) > MAX_NAME or (title and not title.isprintable()):
        raise InvalidInput(
            f"{name[:MAX_NAME]!r} cannot name a profile",
            f"Use up to {MAX_NAME} printable characters.",
        )
    return title


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """`run_id` is the run that measured it; None = brought in from outside. `name` is what people
    call it, "" where nobody named it: its model's name is that of the profile."""

    id: int
    definition_id: int
    run_id: int | None
    profile: Profile
    created_at: datetime
    project_id: int = DEFAULT_PROJECT
    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
