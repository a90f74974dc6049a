"""Where the dashboard may listen: in public only where people sign in."""

from backend.errors import StageflowError
from backend.settings import Settings, SignIn


class OpenToEverybody(StageflowError):
    """Whoever reaches the address could do everything."""

    advice = (
        "Set STAGEFLOW_SIGN_IN=accounts, and STAGEFLOW_PUBLIC_URL to the address that people "
        "open; or listen on 127.0.0.1."
    )


def check(settings: Settings) -> None:
    """Raises `OpenToEverybody`, also where nothing says under which name people come."""
    if settings.is_local:
        return
    if settings.sign_in is SignIn.OFF:
        raise OpenToEverybody(f"sign-in is off, and {settings.host} is a public address")
    if not settings.public_url:
        raise OpenToEverybody(f"listening on {settings.host} needs STAGEFLOW_PUBLIC_URL")
