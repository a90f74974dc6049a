"""Profiles that people add, and those that a run may use in place of measuring again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backend.people.rights import Right
from backend.profiles.devices import peak
from backend.profiles.files import imported_profile
from backend.profiles.profile import Profile
from backend.runs.dispatch.nodes import Node
from backend.runs.history.labels import Change, named
from backend.runs.profiles import StoredProfile, profile_title
from backend.runs.request.spec import ProfileSpec
from backend.services.people.access import Access
from backend.storage.definitions import SqlDefinitions
from backend.storage.profiles import SqlProfiles

DEPENDED_ON = ("python", "stageflow", "torch")
"""The versions that times depend on."""


@dataclass(frozen=True)
class ProfileService:
    """`listed` shows the chosen project's, `store` all that the actor sees."""

    _store: SqlProfiles
    _listed: SqlProfiles
    _definitions: SqlDefinitions
    _access: Access

    def get(self, profile_id: int) -> StoredProfile:
        """Raises `NotFound`."""
        return self._store.get(profile_id)

    def list(self, definition_id: int | None = None) -> Sequence[StoredProfile]:
        """Newest first."""
        return self._listed.list(definition_id)

    def models(self, profile_ids: Collection[int]) -> Mapping[int, str]:
        """The name of the model of each profile."""
        return self._store.models(profile_ids)

    def names(self, profile_ids: Collection[int]) -> Mapping[int, str]:
        """What people call each, "" where nobody named it."""
        return self._store.names(profile_ids)

    def measured(self, spec: ProfileSpec, nodes: Sequence[Node]) -> Sequence[StoredProfile]:
        """What is kept of all that `spec` asks for, its own size last: measured with as many
        repetitions at least, on a device and with the versions of one of `nodes`; () where
        anything is missing."""
        kept = self._store.list(spec.definition_id)
        sizes = [size for size in dict.fromkeys(spec.further) if size != spec.microbatch]
        found = [
            next((k for k in kept if _answers(k.profile, spec, size, nodes)), None)
            for size in (*sizes, spec.microbatch)
        ]
        return [each for each in found if each is not None] if None not in found else ()

    def label(self, profile_id: int, change: Change) -> StoredProfile:
        """Change name, note or tags. Raises `NotFound`, `InvalidInput` and `NameTaken`."""
        kept, new = self.get(profile_id), named(change, profile_title)
        self._access.require(Right.EDIT, "label", f"profile {profile_id}", kept.project_id)
        return self._store.label(profile_id, new)

    def delete(self, profile_id: int) -> StoredProfile:
        """What it was; the run that measured it stays. Raises `NotFound`, and `ProfileInUse`
        naming the plans that were made from it."""
        kept = self.get(profile_id)
        self._access.require(Right.EDIT, "delete", f"profile {profile_id}", kept.project_id)
        self._store.delete(profile_id)
        return kept

    def add(self, profile: Profile, definition_id: int, run_id: int | None = None) -> StoredProfile:
        """Keep a profile of a definition. Raises `NotFound` on an unknown definition."""
        project = self._definitions.get(definition_id).project_id
        self._access.require(Right.EDIT, "add", f"profile of model {definition_id}", project)
        return self._store.add(profile, definition_id, run_id)

    def bring(
        self, filename: str, data: bytes, definition_id: int, microbatch: int | None = None
    ) -> StoredProfile:
        """Keep the profile in a file (JSON, a trace, a graph.txt) as one of a definition, with its
        model's name. Raises `NotFound`, and `InvalidInput` on a file that is none, or that does
        not say how many samples its microbatch has where `microbatch` does not either."""
        model = self._definitions.get(definition_id).name
        return self.add(imported_profile(filename, data, microbatch, model), definition_id)


def _answers(profile: Profile, spec: ProfileSpec, size: int, nodes: Sequence[Node]) -> bool:
    """Whether a profile says what `spec` asks for at microbatches of `size`."""
    asked = (size, spec.parameters, spec.granularity, spec.precision)
    given = (profile.microbatch, profile.parameters, profile.granularity, profile.precision)
    if asked != given or profile.is_partial or (spec.by_parts and not profile.by_parts):
        return False
    if spec.peak:
        return profile.device == peak(spec.peak, spec.precision).name
    return profile.repetitions >= spec.repetitions and any(
        profile.device in {device.name for device in node.devices}
        and all(profile.versions.get(n) == node.versions.get(n) for n in DEPENDED_ON)
        for node in nodes
    )
