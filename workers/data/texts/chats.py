"""Conversations as a template writes them, and which of their tokens are answers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from workers.data.errors import DataFailed
from workers.data.texts.records import TextRecord
from workers.data.texts.tokenizer import Vocabulary

Span = tuple[int, int]
"""The first and the last character of a part of a text, the last not within."""
GENERATION = "{% generation %}"


class Chats:
    """`field` holds the messages of a conversation, each with a role and a content."""

    def __init__(self, vocabulary: Vocabulary, field: str) -> None:
        if not vocabulary.template:
            raise DataFailed(
                f"{vocabulary.name} has no chat template, and {field!r} holds conversations",
                "Give a template (Jinja), or a folder whose tokenizer_config.json has one.",
            )
        self._field, self._template = field, vocabulary.template
        self._render = partial(
            vocabulary.for_chats().apply_chat_template, chat_template=vocabulary.template
        )

    @property
    def _marks(self) -> bool:
        """Whether the template itself says what an assistant generates."""
        return "generation" in self._template and "endgeneration" in self._template

    def marked(self, record: TextRecord) -> tuple[list[int], list[bool]] | None:
        """The tokens of a conversation and whether each is an answer, by the template's own marks;
        None where it has none."""
        if not self._marks:
            return None
        found = self._rendered(
            record, self._messages(record), return_dict=True, return_assistant_tokens_mask=True
        )
        return found["input_ids"], [bool(each) for each in found["assistant_masks"]]

    def text(self, record: TextRecord, finds_answers: bool) -> tuple[str, list[Span]]:
        """The conversation, and where the assistant's messages lie in it where they are asked for:
        what the template adds to the messages before. Raises `DataFailed`."""
        messages = self._messages(record)
        whole = str(self._rendered(record, messages, tokenize=False))
        answers = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        if not finds_answers:
            return whole, []
        return whole, [self._span(record, messages, number, whole) for number in answers]

    def _span(self, record: TextRecord, messages: Sequence[Any], number: int, whole: str) -> Span:
        stop = str(self._rendered(record, messages[: number + 1], tokenize=False))
        for prompt in (True, False):
            before = messages[:number]
            start = self._rendered(record, before, tokenize=False, add_generation_prompt=prompt)
            if before and whole.startswith(stop) and stop.startswith(str(start)):
                return len(str(start)), len(stop.rstrip())
        raise DataFailed(
            f"{record.where}: the template does not say where message {number + 1} begins",
            f"Mark answers in it with {GENERATION} ... {{% endgeneration %}}, or count all tokens.",
        )

    def _messages(self, record: TextRecord) -> list[Any]:
        found = record.value(self._field)
        is_chat = isinstance(found, list) and all(
            isinstance(each, dict) and isinstance(each.get("role"), str) for each in found
        )
        if not is_chat or not found:
            raise DataFailed(
                f"{record.where}: {self._field!r} holds no messages",
                'Write them like [{"role": "user", "content": "..."}, ...].',
            )
        return [*found]

    def _rendered(self, record: TextRecord, messages: Sequence[Any], **more: Any) -> Any:
        try:
            return self._render([*messages], **more)
        except Exception as fault:  # whatever a person's template does
            raise DataFailed(
                f"{record.where}: the chat template fails: {str(fault) or type(fault).__name__}",
                "Correct the template, or the messages that it does not take.",
            ) from None
