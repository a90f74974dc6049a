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
    """What people say of a run, the oldest first."""
    caller.runs(id)
    return list(caller.services().comments.list(id))


@router.post("/runs/{id:int}/comments", status_code=201)
def add_comment(caller: CurrentCaller, id: Id, new: NewComment) -> Comment:
    """Say something of a run, in your name."""
    return caller.services().comments.add(id, new.text)


@router.delete("/comments/{id:int}")
def delete_comment(caller: CurrentCaller, id: Id) -> Comment:
    """Take a comment of yours away, or any one in a project that you manage; what it was."""
    return caller.services().comments.delete(id)
