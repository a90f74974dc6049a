"""The pages before the dashboard as HTML: no script, nothing loaded, every word escaped."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Template

from app.gate.rules import PROVIDER, SIGN_IN
from backend.errors import StageflowError
from backend.people.secret import MIN_LENGTH

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class FormField:
    """An `<input>`."""

    label: str
    name: str
    kind: str
    autocomplete: str
    value: str = ""


def sign_in(
    target: str, name: str = "", error: StageflowError | None = None, provider: str = ""
) -> str:
    """Name and password, or an identity provider; afterwards the visitor is at `target`."""
    aim = quote(target, safe="")
    return _page().render(
        title="Sign in",
        line="Stageflow plans and runs pipeline-parallel training.",
        fields=(_name(name), _password("Password", "password", "current-password")),
        button="Sign in",
        error=error,
        action=f"{SIGN_IN}?next={aim}",
        link=f"{PROVIDER}?next={aim}" if provider else "",
        link_text=f"Sign in with {provider}",
    )


def welcome(invited: str | None, name: str = "", error: StageflowError | None = None) -> str:
    """A first password; the first administrator chooses a name too."""
    return _page().render(
        title="Welcome to Stageflow",
        line=f"Welcome, {invited}. Choose a password."
        if invited
        else "Nobody can sign in yet. Create the first account: it is an administrator's.",
        fields=(
            *(() if invited else (_name(name),)),
            _password(f"Password, {MIN_LENGTH} characters or more", "password"),
            _password("Repeat password", "again"),
        ),
        button="Set password",
        error=error,
    )


def over(error: StageflowError) -> str:
    """An invitation that cannot be used any more."""
    return _page().render(title="Link not valid", error=error, link=SIGN_IN, link_text="Sign in")


def _name(value: str) -> FormField:
    return FormField("Name", "name", "text", "username", value)


def _password(label: str, name: str, autocomplete: str = "new-password") -> FormField:
    return FormField(label, name, "password", autocomplete)


@cache
def _page() -> Template:
    page: Template = Template(Path(__file__).with_name("form.html").read_text(), autoescape=True)
    return page
