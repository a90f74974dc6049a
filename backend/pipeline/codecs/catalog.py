"""Every codec by name. Adding one is its file and a line here, and a round trip of the same name
in `workers.runtime.messages.codecs`."""

from backend.errors import InvalidInput
from backend.pipeline.codecs.blocks import FP8, INT4, INT8
from backend.pipeline.codecs.codec import Codec
from backend.pipeline.codecs.differences import AQ2, AQ4
from backend.pipeline.codecs.half import BF16, FP16
from backend.pipeline.codecs.top import TOP
from backend.units import count_text

CODECS: dict[str, Codec] = {
    member.name: member for member in (BF16, FP16, INT8, FP8, INT4, *TOP.values(), AQ4, AQ2)
}
PLAIN = "none"
"""How a person says that a cut has no codec; plans say it with an empty name."""
AUTO = "auto"
"""How a person asks for a codec at each cut where it is faster."""


def codec(name: str) -> Codec:
    """The codec called `name`; raises `InvalidInput` with the names that there are."""
    if name not in CODECS:
        known = ", ".join((PLAIN, *CODECS))
        raise InvalidInput(f"there is no codec {name!r}", f"Choose one of: {known}.")
    return CODECS[name]


def codecs_of(text: str, num_cuts: int) -> tuple[str, ...]:
    """The codec of each cut, "" for none, of "int8" (all cuts), or of "int8,none,bf16". () where no
    cut has one. Raises `InvalidInput`."""
    names = read_codecs(text)
    if num_cuts == 0:
        return ()
    if len(names) == 1:
        names *= num_cuts
    if len(names) != num_cuts:
        raise InvalidInput(
            f"{text!r} names {count_text(len(names), 'codec')}, and the plan has "
            f"{count_text(num_cuts, 'cut')}",
            "Name one for all cuts, or one for each of them.",
        )
    return names if any(names) else ()


def check_wanted(text: str) -> None:
    """Raise `InvalidInput` where it is neither `AUTO` nor names codecs."""
    if text != AUTO:
        read_codecs(text)


def read_codecs(text: str) -> tuple[str, ...]:
    """The names in a text, "" for none. Raises `InvalidInput`."""
    words = [word.strip() for word in text.split(",")]
    return tuple("" if word in ("", PLAIN) else codec(word).name for word in words)


def write_codecs(names: tuple[str, ...]) -> str:
    """The text of which `codecs_of` makes `names`: the shortest."""
    words = [name or PLAIN for name in names]
    return words[0] if len(set(words)) == 1 else ",".join(words) or PLAIN


def check_codecs(names: tuple[str, ...], num_cuts: int) -> None:
    """Raise `InvalidInput` where a plan's codecs are not one of the catalog, or none, per cut."""
    if names and len(names) != num_cuts:
        raise InvalidInput(
            f"the plan names {count_text(len(names), 'codec')}, and has "
            f"{count_text(num_cuts, 'cut')}",
            'Name a codec for each cut, "" for none.',
        )
    for name in filter(None, names):
        codec(name)
