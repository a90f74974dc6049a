"""A text as tokens, and which of them a model is to give."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.runs.request.spec import DataSpec
from workers.data.errors import DataFailed
from workers.data.texts.chats import Chats, Span
from workers.data.texts.records import TextRecord
from workers.data.texts.tokenizer import Vocabulary

CHATS = ("messages", "conversations")
PAIRS = (("prompt", "completion"), ("source", "target"), ("input", "output"))
"""Fields that are taken without asking, the first that fit."""


@dataclass(frozen=True, slots=True)
class Document:
    """The tokens of a text; `counts`: whether each is one that the model learns to give."""

    tokens: list[int]
    counts: list[bool]


Documents = list[Document]


def columns(records: Sequence[TextRecord], spec: DataSpec) -> tuple[str, str]:
    """The fields with the text and with its answer ("" = it has none), as the spec says them or
    by their usual names. Raises `DataFailed`."""
    for names in (spec.inputs, spec.targets):
        if len(names) > 1:
            raise DataFailed(
                f"texts come from one field, not from {', '.join(names)}", "Choose one of them."
            )
    if spec.inputs:
        return spec.inputs[0], spec.targets[0] if spec.targets else ""
    known = records[0].fields
    pair = next((pair for pair in PAIRS if all(name in known for name in pair)), None)
    if spec.text.task == "seq2seq" and pair is not None:
        return pair
    single = next((name for name in (*CHATS, "text") if name in known), "")
    if single and spec.text.task != "seq2seq":
        return single, spec.targets[0] if spec.targets else ""
    if pair is None:
        raise DataFailed(
            f"{records[0].where} has {', '.join(known) or 'no field'}: which is the text?",
            "Choose the field with the text as inputs, and that with the answer as targets.",
        )
    return pair


def plain(vocabulary: Vocabulary, texts: Sequence[str], ends: bool) -> Documents:
    """Whole texts, every token of which counts; with `ends` each ends with the tokenizer's token
    for that, where it has one."""
    found = (encoding.ids for encoding in vocabulary.encoded(texts, is_whole=True))
    return [_all_of(_ended(ids, vocabulary) if ends else ids) for ids in found]


def with_answers(
    vocabulary: Vocabulary, records: Sequence[TextRecord], spec: DataSpec, text: str, answer: str
) -> Documents:
    """Texts with the answer behind each, or conversations. Raises `DataFailed`."""
    if isinstance(records[0].value(text), list):
        return _conversations(vocabulary, Chats(vocabulary, text), records, spec.text.answers)
    if not answer and spec.text.answers:
        raise DataFailed(
            f"only answers are to count, and {text!r} has none",
            "Choose the field with the answer as targets, or count all tokens.",
        )
    if not answer:
        return plain(vocabulary, [record.text(text) for record in records], ends=True)
    pairs = [(record.text(text), record.text(answer)) for record in records]
    encodings = vocabulary.encoded([first + last for first, last in pairs], is_whole=True)
    found = []
    for (first, last), encoding in zip(pairs, encodings, strict=True):
        tokens = _ended(encoding.ids, vocabulary)
        if not spec.text.answers:
            found.append(_all_of(tokens))
            continue
        counts = _within(encoding.offsets, [(len(first), len(first) + len(last))])
        counts += [True] * (len(tokens) - len(counts))
        if tokens[-1] == vocabulary.number("eos_token"):
            counts[-1] = True  # where to stop is part of the answer
        found.append(Document(tokens, counts))
    return found


def _conversations(
    vocabulary: Vocabulary, chats: Chats, records: Sequence[TextRecord], answers: bool
) -> Documents:
    marked = [chats.marked(record) for record in records] if answers else [None]
    if None not in marked:
        return [Document(*each) for each in marked if each is not None]
    written = [chats.text(record, answers) for record in records]
    encodings = vocabulary.encoded([text for text, _ in written], is_whole=False)
    if not answers:
        return [_all_of(encoding.ids) for encoding in encodings]
    return [
        Document(encoding.ids, _within(encoding.offsets, spans))
        for (_, spans), encoding in zip(written, encodings, strict=True)
    ]


def _within(offsets: Sequence[Span], spans: Sequence[Span]) -> list[bool]:
    """Whether any character of each token lies in one of the spans."""

    def inside(start: int, stop: int) -> bool:
        return any(stop > first and start < last for first, last in spans) and stop > start

    return [inside(*each) for each in offsets]


def _ended(tokens: list[int], vocabulary: Vocabulary) -> list[int]:
    end = vocabulary.number("eos_token")
    return tokens if end is None or tokens[-1:] == [end] else [*tokens, end]


def _all_of(tokens: list[int]) -> Document:
    return Document(tokens, [True] * len(tokens))
