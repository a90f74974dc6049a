"""What every route asks of whoever comes: one table, and whatever is not in it is closed."""

from enum import Enum


class AccessRule(Enum):
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
    "/healthz": AccessRule.HEALTH,
    "/_stcore/health": AccessRule.HEALTH,
    SIGN_IN: AccessRule.OPEN,
    PROVIDER: AccessRule.OPEN,
    BACK: AccessRule.OPEN,
    WELCOME: AccessRule.OPEN,
    "/metrics": AccessRule.PROGRAM,
    "/api": AccessRule.PROGRAM,
}
BELOW = {"/api/": AccessRule.PROGRAM}


def rule_for(path: str) -> AccessRule:
    """The rule of a path; pages, their files and websockets have no line of their own."""
    if path in EXACT:
        return EXACT[path]
    return next(
        (rule for start, rule in BELOW.items() if path.startswith(start)), AccessRule.PERSON
    )
