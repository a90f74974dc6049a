"""Profiles in SQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Text, cast, func, select
from sqlalchemy.orm import Session, defer

from backend.codec import from_json, to_plain
from backend.errors import InvalidInput
from backend.profiles.profile import Profile
from backend.runs.attempts.fence import Fence
from backend.runs.history.labels import Change
from backend.runs.profiles import ProfileInUse, StoredProfile
from backend.storage.database import Database
from backend.storage.fence import hold_once
from backend.storage.labels import label
from backend.storage.look_up import look_up, needed_by, value_of
from backend.storage.quotas import admit
from backend.storage.tables.tables import DefinitionRow, PlanRow, ProfileRow, RunRow
from backend.storage.tables.values import to_column

READ = 256
"""Profiles that a process remembers by their text: pages list all of them each time they are drawn,
and reading one takes longer than drawing its row."""


class SqlProfiles:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, profile: Profile, definition_id: int, run_id: int | None) -> StoredProfile:
        """Raises `NotFound` on an unknown definition or run."""
        with self._database.write() as session:
            definition = look_up(session, DefinitionRow, definition_id)
            admit(session.connection(), definition.project_id)
            if run_id is not None:
                look_up(session, RunRow, run_id)
            return _profile(_insert(session, profile, definition_id, run_id))

    def add_measured(self, fence: Fence, profile: Profile, batch: int = 0) -> int:
        """Keep what a profiling run measured, while its attempt holds it; the profile's id."""
        with self._database.write() as session:
            if hold_once(session, fence, batch) is None:
                kept = select(func.max(ProfileRow.id)).where(ProfileRow.run_id == fence.run_id)
                return session.scalar(kept) or 0
            run = session.get_one(RunRow, fence.run_id)
            return _insert(session, profile, run.definition_id, run.id).id

    def get(self, profile_id: int) -> StoredProfile:
        """Raises `NotFound`."""
        return _profile(self._database.get(ProfileRow, profile_id))

    def delete(self, profile_id: int) -> None:
        """Raises `NotFound`, and `ProfileInUse` naming the plans that were made from it."""
        with self._database.write() as session:
            row = look_up(session, ProfileRow, profile_id)
            if text := needed_by(session, "plan", PlanRow, PlanRow.profile_id == profile_id):
                advice = "Delete the plans first."
                raise ProfileInUse(f"profile {profile_id} is needed by {text}", advice)
            session.delete(row)

    def label(self, profile_id: int, change: Change) -> StoredProfile:
        """Raises `NotFound` and `NameTaken`."""
        with self._database.write() as session:
            return _profile(label(session, ProfileRow, profile_id, change))

    def models(self, profile_ids: Collection[int]) -> Mapping[int, str]:
        """The name of the model of each."""
        return self._of_each(ProfileRow.body["name"].as_string(), profile_ids)

    def names(self, profile_ids: Collection[int]) -> Mapping[int, str]:
        """What people call each, "" where nobody named it."""
        return self._of_each(ProfileRow.name, profile_ids)

    def _of_each(self, column: Any, profile_ids: Collection[int]) -> Mapping[int, str]:
        with self._database.read() as session:
            found = session.execute(
                select(ProfileRow.id, column).where(ProfileRow.id.in_(profile_ids))
            )
            return {row.id: row[1] for row in found}

    def list(self, definition_id: int | None = None) -> Sequence[StoredProfile]:
        """Newest first; None = of every definition."""
        query = select(ProfileRow, cast(ProfileRow.body, Text)).options(defer(ProfileRow.body))
        if definition_id is not None:
            query = query.where(ProfileRow.definition_id == definition_id)
        with self._database.read() as session:
            found = session.execute(query.order_by(ProfileRow.id.desc()))
            return [value_of(StoredProfile, row, profile=_read(text)) for row, text in found]


def _insert(
    session: Session, profile: Profile, definition_id: int, run_id: int | None
) -> ProfileRow:
    row = ProfileRow(
        definition_id=definition_id,
        run_id=run_id,
        body=_storable(profile),
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def _storable(profile: Profile) -> dict[str, Any]:
    """Raises `InvalidInput` where it would not be read again: numbers that are not finite, or
    larger than any column."""
    body: dict[str, Any] = to_plain(Profile, profile)
    try:
        from_json(Profile, to_column(body))
    except (InvalidInput, TypeError) as fault:
        raise InvalidInput(f"a number of this profile cannot be stored: {fault}") from None
    return body


@lru_cache(READ)
def _read(text: str) -> Profile:
    """The profile in a column's text. Raises `InvalidInput`."""
    found: Profile = from_json(Profile, text)
    return found


def _profile(row: ProfileRow) -> StoredProfile:
    return value_of(StoredProfile, row, profile=row.body)
