"""In whose name a command acts, and in which project."""

from backend import bootstrap
from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.settings import load_settings


class TokenUnknown(StageflowError):
    """STAGEFLOW_TOKEN opens nothing."""

    advice = "Make a token on the Account page, or unset STAGEFLOW_TOKEN."


def connect() -> Backend:
    """The services for whoever holds the machine, or for the person whose token is in
    STAGEFLOW_TOKEN; in the project that STAGEFLOW_PROJECT names. Raises what the composition
    root raises, `TokenUnknown`, and `NotFound` on a project that is not seen."""
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
