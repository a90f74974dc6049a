"""Profiles: what each layer of a model costs."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import Base64Bytes

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.labels import KeptLabels
from app.api.operation import router as operations
from backend.profiles.document import check_profile
from backend.profiles.profile import Profile
from backend.profiles.traces.trace_file import Trace, read_torch_trace
from backend.runs.profiles import StoredProfile

router = operations()


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


@dataclass(frozen=True, slots=True)
class TraceText:
    """`trace` is the text that export_chrome_trace of torch.profiler wrote."""

    name: str
    trace: str


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """`content` is the file in base64: Stageflow's JSON, a trace of torch.profiler (also gzipped),
    or PipeDream's graph.txt. `microbatch`: its samples, which a graph.txt does not say, and a trace
    by its shapes at most (null = as the file says)."""

    definition_id: Id
    filename: str
    content: Base64Bytes
    microbatch: Id | None = None


@router.get("/profiles")
def list_profiles(
    caller: CurrentCaller, definition_id: Id | None = None, project_id: Id | None = None
) -> list[ProfileEntry]:
    """The kept profiles, newest first."""
    found = caller.services(project_id).profiles.list(definition_id)
    return [_entry(stored) for stored in found]


@router.post("/profiles", status_code=201)
def add_profile(caller: CurrentCaller, new: NewProfile) -> StoredProfile:
    """Keep a profile that was measured elsewhere."""
    check_profile(new.profile)
    return caller.services().profiles.add(new.profile, new.definition_id)


@router.post("/profiles/files", status_code=201)
def import_profile(caller: CurrentCaller, new: ProfileFile) -> StoredProfile:
    """Keep the profile in a file as one of a model definition."""
    profiles = caller.services().profiles
    return profiles.bring(new.filename, new.content, new.definition_id, new.microbatch)


@router.get("/profiles/{id:int}")
def get_profile(caller: CurrentCaller, id: Id) -> StoredProfile:
    """One profile with its layers: seconds and bytes."""
    return caller.services().profiles.get(id)


@router.patch("/profiles/{id:int}")
def label_profile(caller: CurrentCaller, id: Id, new: KeptLabels) -> StoredProfile:
    """Change the name, note or tags of a profile. 409 where the project has the name."""
    return caller.services().profiles.label(id, new.change)


@router.delete("/profiles/{id:int}")
def delete_profile(caller: CurrentCaller, id: Id) -> StoredProfile:
    """Delete a profile for good; the answer is what it was. 409 where plans were made from it."""
    return caller.services().profiles.delete(id)


def traced(given: TraceText) -> Trace:
    """Raises `InvalidInput`."""
    return read_torch_trace(given.name, given.trace.encode(errors="replace"))


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
