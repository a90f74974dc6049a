"""Profiles as they are stored."""

from dataclasses import dataclass
from datetime import datetime

from backend.errors import InvalidInput
from backend.people.project import DEFAULT_PROJECT
from backend.profiles.profile import Profile


class ProfileInUse(InvalidInput):
    """Plans need a profile that is to be deleted; the message names them."""


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """`run_id` is the run that measured it; None = brought in from outside."""

    id: int
    definition_id: int
    run_id: int | None
    profile: Profile
    created_at: datetime
    project_id: int = DEFAULT_PROJECT
