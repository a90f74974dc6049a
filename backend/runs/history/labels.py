"""What people attach to runs to find them again: a star, tags, a note, another name."""

from collections.abc import Iterable
from dataclasses import dataclass

from backend.errors import InvalidInput

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
                f"the tag {tag[:MAX_TAG]!r} is not a valid tag",
                f"Up to {MAX_TAG} characters, no comma.",
            )
    if len(found) > MAX_TAGS:
        raise InvalidInput(f"{len(found)} tags", f"A run has {MAX_TAGS} at most.")
    return found
