"""What tells two questions apart where answers are kept."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from backend.prediction.question import Question
from backend.profiles.profile import Profile


def profile_key(profile: Profile) -> int:
    """The same for profiles that plans cannot tell apart: what is only a note is left out."""
    kept = profile.state_precision
    return hash((profile.name, profile.microbatch, profile.device, profile.graph, kept))


def question_key(question: Question) -> int:
    """The same for questions that have the same answers."""
    values = (getattr(question, field.name) for field in fields(question))
    return hash(tuple(_key(value) for value in values))


def _key(value: Any) -> Any:
    match value:
        case Profile():
            return profile_key(value)
        case tuple():
            return tuple(map(_key, value))
        case _:
            return value


BY_QUESTION: dict[str | type, Callable[[Any], int]] = {Question: question_key}
"""`hash_funcs` of every function that is computed once per question."""
