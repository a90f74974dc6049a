"""What people say of a run to each other."""

from dataclasses import dataclass
from datetime import datetime

from backend.errors import InvalidInput

MAX_COMMENT = 4_000
MAX_COMMENTS = 1_000
"""Characters of one, and how many a run has."""


@dataclass(frozen=True, slots=True)
class Comment:
    """`text` is plain, of one or more lines; `author` the name of who wrote it."""

    id: int
    run_id: int
    author: str
    text: str
    created_at: datetime


def comment_text(text: str) -> str:
    """Without the space around it. Raises `InvalidInput` where nothing is left, or too much."""
    found = text.strip()
    if not 0 < len(found) <= MAX_COMMENT:
        raise InvalidInput(
            f"the comment has {len(found):,} characters", f"Write 1 to {MAX_COMMENT:,}."
        )
    return found
