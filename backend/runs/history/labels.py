"""What people attach to runs to find them again: a star, tags, a note, another name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from backend.errors import InvalidInput
from backend.people.audit import Access
from backend.people.rights import Right

MAX_TAG = 40
MAX_TAGS = 20
MAX_NOTE = 10_000
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a run's labels; None leaves a thing as it is. `tags` replaces all
    tags, `add` and `remove` change some."""

    starred: bool | None = None
    note: str | None = None
    name: str | None = None
    tags: tuple[str, ...] | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class LabelStore(Protocol):
    def projects(self, run_ids: Sequence[int]) -> Sequence[int]:
        """Those that the runs belong to, ascending. Unknown ids are left out."""
        ...

    def change(self, run_ids: Sequence[int], change: Change) -> int:
        """Change these runs in one transaction; how many there are. Unknown ids are left out."""
        ...

    def tags(self) -> Sequence[str]:
        """Every tag that some run has, by name."""
        ...

    def owners(self) -> Sequence[str]:
        """Everybody who asked for a run, by name."""
        ...


class LabelService:
    """`listed` shows the chosen project's, `store` all that the actor sees."""

    def __init__(self, store: LabelStore, listed: LabelStore, access: Access) -> None:
        self._store = store
        self._listed = listed
        self._access = access

    def change(self, run_ids: Iterable[int], change: Change) -> int:
        """Change the labels of several runs; how many of them there are. Raises `InvalidInput`
        on an empty or overlong name, tag or note, and on too many tags."""
        ids = tuple(run_ids)
        target = "run " + ", ".join(map(str, ids))
        for project in self._store.projects(ids) or (self._access.home,):
            self._access.check(Right.EDIT, "label", target, project)
        self._access.require(Right.VIEW, "label", target)
        return self._store.change(ids, checked(change))

    def tags(self) -> Sequence[str]:
        return self._listed.tags()

    def owners(self) -> Sequence[str]:
        return self._listed.owners()


def checked(change: Change) -> Change:
    """The change with its words tidied. Raises `InvalidInput`."""
    if change.name is not None and not 0 < len(change.name.strip()) <= MAX_NAME:
        raise InvalidInput(f"a name has 1 to {MAX_NAME} characters", "Give the run a short name.")
    if change.note is not None and len(change.note) > MAX_NOTE:
        raise InvalidInput(
            f"the note has {len(change.note):,} characters", f"{MAX_NOTE:,} are kept at most."
        )
    return Change(
        starred=change.starred,
        note=change.note,
        name=change.name.strip() if change.name is not None else None,
        tags=None if change.tags is None else tidy(change.tags),
        add=tidy(change.add),
        remove=tidy(change.remove),
    )


def tidy(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without spaces around them, each once, in order. Raises `InvalidInput`."""
    found = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
    for tag in found:
        if len(tag) > MAX_TAG or "," in tag:
            raise InvalidInput(
                f"the tag {tag[:MAX_TAG]!r} is no tag", f"Up to {MAX_TAG} characters, no comma."
            )
    if len(found) > MAX_TAGS:
        raise InvalidInput(f"{len(found)} tags", f"A run has {MAX_TAGS} at most.")
    return found
