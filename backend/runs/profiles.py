"""Profiles as they are stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backend.codec import from_json
from backend.profiles.profile import Profile
from backend.runs.fence import Fence


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """`run_id` is the run that measured it; None = brought in from outside."""

    id: int
    definition_id: int
    run_id: int | None
    profile: Profile
    created_at: datetime


class ProfileStore(Protocol):
    def add(self, profile: Profile, definition_id: int, run_id: int | None) -> StoredProfile:
        """Raises `NotFound` on an unknown definition or run."""
        ...

    def add_measured(self, fence: Fence, profile: Profile) -> int:
        """Keep what a profiling run measured, while its attempt holds it; the profile's id."""
        ...

    def get(self, profile_id: int) -> StoredProfile:
        """Raises `NotFound`."""
        ...

    def list(self, definition_id: int | None) -> Sequence[StoredProfile]:
        """Newest first; None = of every definition."""
        ...


class ProfileService:
    def __init__(self, store: ProfileStore) -> None:
        self._store = store

    def get(self, profile_id: int) -> StoredProfile:
        """Raises `NotFound`."""
        return self._store.get(profile_id)

    def list(self, definition_id: int | None = None) -> Sequence[StoredProfile]:
        """Newest first."""
        return self._store.list(definition_id)

    def add(self, profile: Profile, definition_id: int, run_id: int | None = None) -> StoredProfile:
        """Keep a profile of a definition. Raises `NotFound` on an unknown definition."""
        return self._store.add(profile, definition_id, run_id)

    def import_json(self, data: bytes | str, definition_id: int) -> StoredProfile:
        """Keep a profile given as JSON. Raises `InvalidInput` naming the faulty field."""
        return self.add(from_json(Profile, data), definition_id)
