"""Passwords and random secrets: made, checked, and kept only as digests."""

import hashlib
from functools import cache
from secrets import token_urlsafe

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from backend.errors import InvalidInput
from backend.few_at_once import FewAtOnce

MIN_LENGTH = 12
MAX_LENGTH = 256
"""More would only make the server hash for nothing."""

_hasher = PasswordHasher()  # argon2id with RFC 9106's second recommendation: 64 MiB, 3 passes
_few = FewAtOnce("sign-ins")  # 128 MiB and a core or two, however many come


@cache
def _nobodys() -> str:
    """A hash behind which there is no password. Made at the first sign-in: it takes 0.1 s, which
    commands need not spend."""
    return _hasher.hash(token_urlsafe())


def new_secret() -> str:
    """256 random bits, in letters that a header and a URL can carry."""
    return token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of a random secret. A slow hash is for what people choose."""
    return hashlib.sha256(secret.encode()).hexdigest()


def hashed(password: str, name: str) -> str:
    """The password's argon2id hash. Raises `InvalidInput` on one that is easily guessed."""
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise InvalidInput(
            f"the password has {len(password)} characters",
            f"Use {MIN_LENGTH} to {MAX_LENGTH}: a sentence is easier to remember than symbols.",
        )
    if name.casefold() in password.casefold() or len(set(password)) < 5:
        raise InvalidInput(
            "the password contains the name, or too few different characters",
            "Use a sentence that nobody else would think of.",
        )
    with _few.turn():
        return _hasher.hash(password)


def matches(password: str, kept: str | None) -> bool:
    """Whether `password` is the one behind the hash `kept`. Takes as long where there is none,
    so that its time does not tell which names exist. Raises `TooBusy`."""
    with _few.turn():
        nobodys = _nobodys()  # for every name, so that the first sign-in tells nothing either
        try:
            return _hasher.verify(kept or nobodys, password[:MAX_LENGTH]) and kept is not None
        except (VerificationError, InvalidHashError):
            return False
