"""What the agents of a pool's jobs are told of this installation: by variables and by files."""

from pathlib import Path

from backend.setting_files import PREFIX, SECRETS
from backend.settings import Settings

OWN = frozenset({"node", "home", "node_address", "host", "port", "devices", "redis_url"})
"""Fields that each machine has for itself, or that an agent without Redis does not need."""
PEOPLES = frozenset(
    {"sign_in", "oidc_issuer", "oidc_client_id", "oidc_client_secret", "oidc_newcomers"}
    | {"user", "api_token", "token", "project", "rate"}
)
"""Those of the dashboard and of people."""
FOLDERS = frozenset({"shared", "data"})


def handed_down(settings: Settings, folder: Path) -> dict[str, str]:
    """The variables for the agents. What may hold a secret goes into files of `folder`, which is
    made for its owner alone."""
    fields = _given(settings) | {"shared": str(settings.shared_folder)}
    fields |= {"database_url": settings.sql_url}
    hidden = {name for name in fields if not Settings.model_fields[name].repr}
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    for name in hidden:
        file = folder / f"{PREFIX.lower()}{name}"
        file.touch(mode=0o600)
        file.write_text(fields[name])
    return _variables(fields) | {SECRETS: str(folder)}


def rules(settings: Settings) -> dict[str, str]:
    """The variables for agents that have other folders than this machine, and secrets from
    elsewhere: what is given of leases, limits and the like."""
    return _variables({n: text for n, text in _given(settings).items() if n not in FOLDERS})


def _given(settings: Settings) -> dict[str, str]:
    fields = {name: _text(settings, name) for name in settings.model_fields_set - OWN - PEOPLES}
    return {name: text for name, text in fields.items() if text}


def _variables(fields: dict[str, str]) -> dict[str, str]:
    shown = (name for name in fields if Settings.model_fields[name].repr)
    return {f"{PREFIX}{name.upper()}": fields[name] for name in shown}


def _text(settings: Settings, name: str) -> str:
    return str(getattr(settings, name))
