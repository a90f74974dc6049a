"""Rules with settings as a person writes them: "diloco:every=100,rate=0.7"."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from backend.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Rule = TypeVar("Rule", bound=DataclassInstance)
else:
    Rule = TypeVar("Rule")


def rule_words(name: str, rule: object, settings: tuple[str, ...]) -> str:
    """The name and these settings of `rule`, as `with_settings` reads them."""
    said = ",".join(f"{each}={getattr(rule, each):.12g}" for each in settings)
    return f"{name}:{said}" if said else name


def with_settings(rule: Rule, text: str, settings: tuple[str, ...], title: str, like: str) -> Rule:
    """`rule` with what a text such as "every=100,rate=0.7" sets, each in the type that it has.
    Raises `InvalidInput` where a setting is not one of `settings`, or no number; `like` is a text
    that would do."""
    types = {field.name: type(getattr(rule, field.name)) for field in fields(rule)}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, _, value = (part.strip() for part in word.partition("="))
        if name not in settings:
            known = ", ".join(settings) or "none"
            raise InvalidInput(f"{title} has no setting {name!r}", f"It has: {known}.")
        try:
            rule = replace(rule, **{name: types[name](value)})
        except ValueError:
            raise InvalidInput(f"{word!r} has no number", f"Try {like}.") from None
    return rule
