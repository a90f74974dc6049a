"""In whose name a command acts, and in which project."""

from typing import TYPE_CHECKING

from backend.errors import StageflowError

if TYPE_CHECKING:
    from backend.bootstrap import Backend


class TokenUnknown(StageflowError):
    """STAGEFLOW_TOKEN opens nothing."""

    advice = "Make a token on the Account page, or unset STAGEFLOW_TOKEN."


def connect() -> "Backend":
    """The services for whoever holds the machine, or for the person whose token is in
    STAGEFLOW_TOKEN; in the project that STAGEFLOW_PROJECT names. Raises what the composition
    root raises, `TokenUnknown`, and `NotFound` on a project that is not seen."""
    from backend import bootstrap  # brings the database, which a plan of a file does without
    from backend.settings import load_settings

    settings = load_settings()
    backend = bootstrap.connect(settings)
    if settings.token:
        actor = backend.accounts.bearer(settings.token)
        if actor is None:
            raise TokenUnknown("the token has ended, or was never one")
        backend = backend.acting(actor)
    if settings.project:
        backend = backend.within(backend.projects.named(settings.project).id)
    return backend
