"""What people say of a run to each other."""

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.layout import card
from app.formats import ago, count, plain
from app.session import state
from backend.runs.history.comments import MAX_COMMENT, Comment
from backend.runs.run import Run


@guarded
def comment_view(run: Run) -> None:
    """The comments, the oldest first, and a field for another one."""
    comments = services.backend().comments
    said = comments.list(run.id)
    with card("Comments", count(len(said)) if said else "for everybody who sees the run"):
        for comment in said:
            _line(comment, comments.may_delete(comment, run.project_id))
        with st.form("new-comment", border=False, clear_on_submit=True):
            text = st.text_area(
                "Comment",
                max_chars=MAX_COMMENT,
                height=80,
                placeholder="What should others know of this run?",
                label_visibility="collapsed",
            )
            barred = closed(why_not(run.project_id))
            asked = st.form_submit_button("Comment", icon=":material/comment:", **barred)
    if asked:
        comments.add(run.id, text)
        state.done("The comment is added")


def _line(comment: Comment, may_delete: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="top", key=f"comment-{comment.id}"):
        who = f"**{plain(comment.author or 'operator')}** :gray[:small[{ago(comment.created_at)}]]"
        lines = "  \n".join(map(plain, comment.text.splitlines()))
        st.markdown(f"{who}  \n{lines}", width="stretch")
        if may_delete and st.button(
            "Delete",
            key=f"delete-comment-{comment.id}",
            type="tertiary",
            help="Delete this comment",
        ):
            services.backend().comments.delete(comment.id)
            state.done("The comment is deleted")
