"""Comments on runs."""

from dataclasses import dataclass

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.operation import router as operations
from backend.runs.history.comments import Comment

router = operations()


@dataclass(frozen=True, slots=True)
class NewComment:
    """Plain text of at most 4,000 characters."""

    text: str


@router.get("/runs/{id:int}/comments")
def list_comments(caller: CurrentCaller, id: Id) -> list[Comment]:
    """The comments on a run, the oldest first."""
    caller.runs(id)
    return list(caller.services().comments.list(id))


@router.post("/runs/{id:int}/comments", status_code=201)
def add_comment(caller: CurrentCaller, id: Id, new: NewComment) -> Comment:
    """Comment on a run, in your name."""
    return caller.services().comments.add(id, new.text)


@router.delete("/comments/{id:int}")
def delete_comment(caller: CurrentCaller, id: Id) -> Comment:
    """Delete a comment of yours, or any in a project that you manage. The answer is what it was."""
    return caller.services().comments.delete(id)
