"""Profiles: what each layer of a model costs."""

from dataclasses import dataclass
from datetime import datetime

from app.api.fields import Id
from app.api.operation import Call, Operation
from backend.profiles.document import check_profile
from backend.profiles.profile import Profile
from backend.runs.profiles import StoredProfile


@dataclass(frozen=True, slots=True)
class ProfileQuery:
    """`definition_id`: only the profiles of that definition; `project_id`: of that project."""

    definition_id: Id | None = None
    project_id: Id | None = None


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """A profile without its layers. `run_id` is the run that measured it."""

    id: int
    definition_id: int
    run_id: int | None
    name: str
    microbatch: int
    device: str
    num_layers: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewProfile:
    """A profile measured elsewhere, of a definition that is kept here."""

    definition_id: Id
    profile: Profile


def _list(call: Call) -> list[ProfileEntry]:
    asked: ProfileQuery = call.query
    found = call.within(asked.project_id).profiles.list(asked.definition_id)
    return [_entry(stored) for stored in found]


def _entry(stored: StoredProfile) -> ProfileEntry:
    found = stored.profile
    return ProfileEntry(
        stored.id,
        stored.definition_id,
        stored.run_id,
        found.name,
        found.microbatch,
        found.device,
        len(found.layers),
        stored.created_at,
    )


def _add(call: Call) -> StoredProfile:
    check_profile(call.body.profile)
    return call.backend.profiles.add(call.body.profile, call.body.definition_id)


OPERATIONS = (
    Operation(
        "list_profiles",
        "GET",
        "/profiles",
        "The kept profiles, newest first.",
        _list,
        list[ProfileEntry],
        query=ProfileQuery,
    ),
    Operation(
        "add_profile",
        "POST",
        "/profiles",
        "Keep a profile that was measured elsewhere.",
        _add,
        StoredProfile,
        body=NewProfile,
        status=201,
    ),
    Operation(
        "get_profile",
        "GET",
        "/profiles/{id:int}",
        "One profile with its layers: seconds and bytes.",
        lambda call: call.backend.profiles.get(call.id),
        StoredProfile,
    ),
)
