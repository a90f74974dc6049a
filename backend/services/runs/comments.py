"""Comments on runs, by people with the right to edit."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.people.rights import Right
from backend.runs.history.comments import Comment, comment_text
from backend.services.people.access import Access
from backend.storage.runs.comments import SqlComments
from backend.storage.runs.runs import SqlRuns


@dataclass(frozen=True)
class CommentService:
    _store: SqlComments
    _runs: SqlRuns
    _access: Access

    def add(self, run_id: int, text: str) -> Comment:
        """In the actor's name. Raises `NotFound` and `InvalidInput`."""
        project = self._runs.get(run_id).project_id
        self._access.require(Right.EDIT, "comment on", f"run {run_id}", project)
        return self._store.add(run_id, self._access.actor.name, comment_text(text))

    def list(self, run_id: int) -> Sequence[Comment]:
        """The oldest first."""
        return self._store.list(run_id)

    def delete(self, comment_id: int) -> Comment:
        """One's own, or any one of a project that one manages; what it was. Raises `NotFound`."""
        found = self._store.get(comment_id)
        project = self._runs.get(found.run_id).project_id
        target = f"comment {comment_id} on run {found.run_id}"
        self._access.require(self._needed(found), "delete", target, project)
        self._store.delete(comment_id)
        return found

    def may_delete(self, comment: Comment, project: int) -> bool:
        """Whether `delete` would, of a comment on a run of this project."""
        return self._access.may(self._needed(comment), project)

    def _needed(self, comment: Comment) -> Right:
        return Right.EDIT if comment.author == self._access.actor.name else Right.MANAGE
