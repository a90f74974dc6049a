"""What every route asks of whoever comes: one table, and whatever is not in it is closed."""

from enum import Enum


class Rule(Enum):
    """HEALTH: anybody, under whatever name: probes know addresses alone. OPEN: anybody. PERSON:
    somebody who has signed in, in a browser. PROGRAM: a person or a token."""

    HEALTH = "health"
    OPEN = "open"
    PERSON = "person"
    PROGRAM = "program"


SIGN_IN = "/sign-in"
WELCOME = "/welcome"
PROVIDER = "/sign-in/provider"
BACK = "/sign-in/back"

EXACT = {
    "/healthz": Rule.HEALTH,
    "/_stcore/health": Rule.HEALTH,
    SIGN_IN: Rule.OPEN,
    PROVIDER: Rule.OPEN,
    BACK: Rule.OPEN,
    WELCOME: Rule.OPEN,
    "/metrics": Rule.PROGRAM,
    "/api": Rule.PROGRAM,
}
BELOW = {"/api/": Rule.PROGRAM}


def rule_for(path: str) -> Rule:
    """The rule of a path; pages, their files and websockets have no line of their own."""
    if path in EXACT:
        return EXACT[path]
    return next((rule for start, rule in BELOW.items() if path.startswith(start)), Rule.PERSON)
