"""A tokenizer.json of the `tokenizers` library, and which of its tokens have a role."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.errors import first_line
from workers.data.errors import DataFailed
from workers.data.files import there

FILE = "tokenizer.json"
CONFIG, ROLES, TEMPLATE = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
ADVICE = "Give a tokenizer.json (`save_pretrained` of a fast tokenizer writes it), or its folder."
USUAL = {
    "eos_token": ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>"),
    "bos_token": ("<s>", "<|begin_of_text|>", "<bos>"),
    "pad_token": ("<pad>", "[PAD]", "<|pad|>"),
    "mask_token": ("[MASK]", "<mask>"),
}
"""The names of tokens with a role, where no file beside the tokenizer says them."""


@dataclass(frozen=True)
class Vocabulary:
    """`library` is a tokenizers.Tokenizer; `roles`: the tokens with a role, by transformers' name
    of it; `texts`: the tokenizer's files, by name."""

    library: Any
    name: str
    roles: Mapping[str, str]
    template: str
    texts: Mapping[str, str]

    @property
    def size(self) -> int:
        numbers: dict[str, int] = self.library.get_vocab(with_added_tokens=True)
        return 1 + max(numbers.values(), default=0)

    def number(self, role: str) -> int | None:
        """The number of the token with this role; None where there is none."""
        found = self.library.token_to_id(self.roles.get(role, ""))
        return None if found is None else int(found)

    @property
    def pad(self) -> int:
        """What fills a sample: a loss does not count it, so that any token will do."""
        known = (self.number("pad_token"), self.number("eos_token"))
        return next((number for number in known if number is not None), 0)

    @property
    def special(self) -> frozenset[int]:
        """Tokens that are no part of a text."""
        added = self.library.get_added_tokens_decoder().items()
        roles = (self.number(role) for role in self.roles)
        return frozenset(
            {number for number, token in added if token.special}
            | {number for number in roles if number is not None}
        )

    def encoded(self, texts: Sequence[str], is_whole: bool) -> list[Any]:
        """tokenizers' own result for each text; `is_whole`: with the tokens that the tokenizer
        puts around a text."""
        found: list[Any] = self.library.encode_batch(list(texts), add_special_tokens=is_whole)
        return found

    def for_chats(self) -> Any:
        """The same as transformers has it."""
        from transformers import PreTrainedTokenizerFast  # seconds, and only chats need it

        make: Any = PreTrainedTokenizerFast
        return make(tokenizer_object=self.library, **self.roles)


def load_tokenizer(place: Path, template: str = "") -> Vocabulary:
    """Read a tokenizer.json, or the folder that it lies in with the files beside it; `template`
    goes before its own. Raises `DataFailed`."""
    import tokenizers

    is_folder = there(place, "a tokenizer.json, or its folder,").is_dir()
    file = place / FILE if is_folder else place
    texts = {FILE: _text(there(file, "a tokenizer.json"))}
    for name in (CONFIG, ROLES, TEMPLATE) if is_folder else ():
        if (place / name).is_file():
            texts[name] = _text(place / name)
    try:
        library = tokenizers.Tokenizer.from_str(texts[FILE])
    except Exception as fault:  # the library raises Exception itself
        reason = f"{file.name} is not a file of the tokenizers library: {first_line(fault)}"
        raise DataFailed(reason, ADVICE) from None
    library.no_truncation()
    library.no_padding()
    config = _fields(texts, CONFIG) | _fields(texts, ROLES)
    known = library.get_vocab(with_added_tokens=True)
    said = {role: _content(config.get(role)) for role in USUAL}
    usual = {role: next((n for n in names if n in known), "") for role, names in USUAL.items()}
    roles = {role: said[role] or usual[role] for role in USUAL}
    own = texts.get(TEMPLATE) or _content(config.get("chat_template"))
    return Vocabulary(
        library,
        file.name,
        {role: token for role, token in roles.items() if token in known},
        template or own,
        texts | ({TEMPLATE: template} if template else {}),
    )


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise DataFailed(f"{file.name} cannot be read: {first_line(fault)}", ADVICE) from None


def _fields(texts: Mapping[str, str], name: str) -> dict[str, Any]:
    try:
        found = json.loads(texts.get(name, "{}"))
    except ValueError as fault:
        raise DataFailed(f"{name} is not JSON: {fault}", "Correct it, or remove it.") from None
    return found if isinstance(found, dict) else {}


def _content(value: Any) -> str:
    """A token as these files say it: its text, or an object with it."""
    found = value.get("content", "") if isinstance(value, dict) else value
    return found if isinstance(found, str) else ""
