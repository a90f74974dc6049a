"""What people attach to runs, plans, profiles and clusters: a star, tags, a note, a name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from backend.errors import InvalidInput

MAX_TAG = 40
MAX_TAGS = 20
MAX_NOTE = 10_000
MAX_NAME = 200


class NameTaken(InvalidInput):
    """The project has another thing of that kind by that name."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a thing's labels; None leaves one as it is. `tags` replaces all tags,
    `add` and `remove` change some. Runs alone have a star."""

    starred: bool | None = None
    note: str | None = None
    name: str | None = None
    tags: tuple[str, ...] | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def named(change: Change, title: Callable[[str], str]) -> Change:
    """The change `checked`, its name by the rule of its kind. Raises `InvalidInput`."""
    tidied = checked(replace(change, name=None))
    return tidied if change.name is None else replace(tidied, name=title(change.name))


def checked(change: Change) -> Change:
    """The change with its words tidied. Raises `InvalidInput`."""
    if change.name is not None and not 0 < len(change.name.strip()) <= MAX_NAME:
        raise InvalidInput(f"a name has 1 to {MAX_NAME} characters", "Give a short name.")
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


def tags_after(tags: tuple[str, ...], change: Change) -> tuple[str, ...]:
    """What the tags of a thing become, by name. Raises `InvalidInput` on too many."""
    kept = set(tags if change.tags is None else change.tags) - set(change.remove)
    return tidy(sorted(kept | set(change.add)))


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
        raise InvalidInput(f"{len(found)} tags", f"{MAX_TAGS} are kept at most.")
    return found
