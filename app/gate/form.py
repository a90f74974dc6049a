"""The pages before the dashboard as HTML: no script, nothing loaded, every word escaped."""

from html import escape
from urllib.parse import quote

from app.gate.rules import PROVIDER, SIGN_IN
from backend.errors import StageflowError
from backend.people.secret import MIN_LENGTH

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
STYLE = """
:root{color-scheme:light dark;--ink:#1B2430;--soft:#5b6675;--line:#c9d0d9;--back:#F5F7FA;
--box:#fff;--act:#0072B2;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#E3E7ED;--soft:#9aa5b3;--line:#3a4552;
--back:#12161C;--box:#1B2129;--act:#1E7AB8;--bad:#ff8a80}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0;
display:grid;place-items:center;min-height:100vh}
main{width:min(24rem,92vw);background:var(--box);border:1px solid var(--line);border-radius:6px;
padding:2rem}
h1{font-size:1.25rem;margin:0 0 .25rem}p{margin:0 0 1rem;color:var(--soft)}
label{display:block;font-size:.9rem;margin:.9rem 0 .25rem}
input{width:100%;font:inherit;color:inherit;padding:.5rem .6rem;background:var(--back);
border:1px solid var(--line);border-radius:6px}
button{margin-top:1.3rem;width:100%;font:inherit;font-weight:600;color:#fff;padding:.55rem;
background:var(--act);border:0;border-radius:6px;cursor:pointer}
input:focus-visible,button:focus-visible{outline:2px solid var(--act);outline-offset:2px}
a.other{display:block;text-align:center;margin-top:1rem;padding:.5rem;color:inherit;
border:1px solid var(--line);border-radius:6px;text-decoration:none}
.bad{color:var(--bad);margin:.9rem 0 0}.bad small{display:block;color:var(--soft)}
"""


def sign_in(
    target: str, name: str = "", error: StageflowError | None = None, provider: str = ""
) -> str:
    """Name and password, or a `provider` that vouches; afterwards the visitor is at `target`."""
    aim = quote(target, safe="")
    other = (
        f'<a class="other" href="{PROVIDER}?next={escape(aim)}">Sign in with {escape(provider)}</a>'
    )
    return _page(
        "Sign in",
        "Stageflow plans and runs pipeline-parallel training.",
        _field("Name", "name", "text", "username", value=name)
        + _field("Password", "password", "password", "current-password"),
        "Sign in",
        error,
        f"{SIGN_IN}?next={aim}",
        other if provider else "",
    )


def welcome(invited: str | None, name: str = "", error: StageflowError | None = None) -> str:
    """A first password; the first administrator chooses a name too."""
    line = (
        f"Welcome, {invited}. Choose a password."
        if invited
        else "Nobody can sign in yet. Make the first account: it decides who else may."
    )
    chosen = "" if invited else _field("Name", "name", "text", "username", value=name)
    return _page(
        "Welcome to Stageflow",
        line,
        chosen
        + _field(
            f"Password, {MIN_LENGTH} characters or more", "password", "password", "new-password"
        )
        + _field("The same once more", "again", "password", "new-password"),
        "Set password",
        error,
    )


def over(error: StageflowError) -> str:
    """An invitation that cannot be used any more."""
    return _frame("Link not valid", _told(error) + f'<p><a href="{SIGN_IN}">Sign in</a></p>')


def _page(
    title: str,
    line: str,
    fields: str,
    button: str,
    error: StageflowError | None,
    action: str = "",
    below: str = "",
) -> str:
    where = f' action="{escape(action)}"' if action else ""
    return _frame(
        title,
        f"<p>{escape(line)}</p>"
        f'<form method="post"{where}>{fields}{_told(error) if error else ""}'
        f"<button>{escape(button)}</button></form>{below}",
    )


def _field(label: str, name: str, kind: str, filled: str, value: str = "") -> str:
    return (
        f'<label for="{name}">{escape(label)}</label><input id="{name}" name="{name}" '
        f'type="{kind}" autocomplete="{filled}" value="{escape(value)}" maxlength="256" required>'
    )


def _told(error: StageflowError) -> str:
    words = str(error)
    return (
        f'<p class="bad" role="alert">{escape(words[:1].upper() + words[1:])}.'
        f"<small>{escape(error.advice)}</small></p>"
    )


def _frame(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)} · Stageflow</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
