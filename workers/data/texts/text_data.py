"""Texts as a data set of tokens: what the forms of data give their records to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from workers.data.errors import DataFailed
from workers.data.request import DataRequest
from workers.data.split import DataSet, Split, rows_held_out
from workers.data.texts.documents import Document, columns, plain, with_answers
from workers.data.texts.records import TextRecord
from workers.data.texts.stretches import Stretches, stretches
from workers.data.texts.token_splits import HiddenTokens, NextTokens, Translations
from workers.data.texts.tokenizer import Vocabulary, load_tokenizer
from workers.data.texts.wanted import WantedInputs, wanted
from workers.definitions.definition import LoadedDefinition

APART = "position_ids, or an attention_mask of (samples, tokens, tokens)"


@dataclass
class TextData:
    """Makes the parts of a data set of what `request` says; `notes` are for the run's log."""

    request: DataRequest
    name: str
    notes: list[str] = field(default_factory=list)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        text = self.request.spec.text
        return load_tokenizer(Path(self.request.tokenizer), text.template)

    @cached_property
    def wanted(self) -> WantedInputs:
        return wanted(self.request.definition, self.request.spec.text.task)

    def data_set(self, records: Sequence[TextRecord], held_out: Sequence[TextRecord]) -> DataSet:
        """Of records to train on and those held out; where there are none of those, a share of
        the first, always the same. Raises `DataFailed`."""
        chosen = columns(records, self.request.spec)
        if not held_out:
            train, kept = rows_held_out(len(records), self.request.spec.held_out)
            records, held_out = [records[n] for n in train], [records[n] for n in kept]
        part = self._part(records, chosen, "train on")
        return self._found(part, self._part(held_out, chosen, "hold out") if held_out else None)

    def of_texts(self, train: Sequence[str], held_out: Sequence[str]) -> DataSet:
        """The same of texts that have no fields."""

        def records(texts: Sequence[str], part: str) -> list[TextRecord]:
            return [TextRecord({"text": text}, f"{self.name}, {part}") for text in texts]

        if self.request.spec.text.task == "seq2seq":
            raise DataFailed(
                "a text file has one text per line, and this task needs two",
                'Give JSON lines with two fields, such as {"source": "...", "target": "..."}.',
            )
        chosen = ("text", "")
        part = self._part(records(train, "the part to train on"), chosen, "train on")
        rest = records(held_out, "the part held out")
        return self._found(part, self._part(rest, chosen, "hold out") if rest else None)

    def _found(self, train: Split, held_out: Split | None) -> DataSet:
        spec, longest = self.request.spec, self.request.definition.texts.longest
        most = max((spec.length, *spec.buckets))
        if longest is not None and most > longest:
            raise DataFailed(
                f"samples of {most} tokens are longer than the {longest} that the model knows",
                f"Give a length of {longest}, or a model with more positions.",
            )
        self._check_vocabulary()
        if spec.text.packing and not self.wanted.keeps_apart:
            self.notes.append(
                "Texts that share a sample see each other: the model takes nothing that keeps them "
                f"apart ({APART})."
            )
        return DataSet(
            train,
            held_out,
            self.name,
            tuple(self.notes),
            self.vocabulary.size,
            self.vocabulary.texts,
        )

    def _check_vocabulary(self) -> None:
        """Raise `DataFailed` where the model knows fewer tokens than the tokenizer has."""
        size, known = self.vocabulary.size, known_tokens(self.request.definition)
        if known is not None and size > known:
            raise DataFailed(
                f"{self.vocabulary.name} has {size} tokens, and the model knows {known}",
                f"Give the model that this tokenizer was made for, or one of {size} tokens.",
            )

    def _part(self, records: Sequence[TextRecord], chosen: tuple[str, str], part: str) -> Split:
        if self.request.spec.text.task == "seq2seq":
            return self._translations(records, *chosen, part)
        if self.request.spec.text.task == "masked":
            texts = [record.text(chosen[0]) for record in records]
            documents = plain(self.vocabulary, texts, ends=False)
        else:
            documents = with_answers(self.vocabulary, records, self.request.spec, *chosen)
        return self._of_tokens(documents, part)

    def _of_tokens(self, documents: Sequence[Document], part: str) -> Split:
        spec, vocabulary = self.request.spec, self.vocabulary
        is_masked = spec.text.task == "masked"
        found = self._laid_out(documents, spec.text.packing, part)
        special = torch.tensor(sorted(vocabulary.special), dtype=torch.long)
        useful = ~torch.isin(found.tokens, special) if is_masked else found.labels >= 0
        kept = found.only(useful)
        self._tell_useful(len(found), len(kept), part)
        common = (kept, self.wanted, self._length, vocabulary.pad, self._varies)
        if not is_masked:
            return NextTokens(*common)
        mask = vocabulary.number("mask_token")
        if mask is None:
            raise DataFailed(
                f"{vocabulary.name} has no mask token",
                "Use the tokenizer of a masked language model, or name its mask_token in a "
                "tokenizer_config.json beside it.",
            )
        return HiddenTokens(
            *common,
            share=spec.text.masked,
            mask=mask,
            vocabulary=vocabulary.size,
            special=special,
        )

    def _translations(
        self, records: Sequence[TextRecord], text: str, answer: str, part: str
    ) -> Translations:
        if not answer:
            raise DataFailed(
                "learning one text from another needs two fields",
                "Choose the second one as targets.",
            )
        pairs = zip(
            plain(self.vocabulary, [record.text(text) for record in records], ends=True),
            plain(self.vocabulary, [record.text(answer) for record in records], ends=True),
            strict=True,
        )
        whole = [pair for pair in pairs if pair[0].tokens and pair[1].tokens]
        sources, answers = (
            self._laid_out([pair[n] for pair in whole], False, part) for n in (0, 1)
        )
        self._tell_useful(len(records), len(whole), part)
        vocabulary, start = self.vocabulary, self.request.definition.texts.start
        known = (start, vocabulary.number("bos_token"), vocabulary.pad)
        return Translations(
            sources,
            answers,
            self.wanted,
            self._length,
            vocabulary.pad,
            next(number for number in known if number is not None),
            self._varies,
        )

    @property
    def _length(self) -> int:
        return max((self.request.spec.length, *self.request.spec.buckets))

    @property
    def _varies(self) -> bool:
        return bool(self.request.spec.buckets) and not self.request.spec.text.packing

    def _laid_out(self, documents: Sequence[Document], packed: bool, part: str) -> Stretches:
        found = stretches(documents, self._length, packed)
        long = sum(len(document.tokens) > self._length + 1 for document in documents)
        if long and not packed:
            self.notes.append(
                f"{long} of {len(documents)} texts to {part} are cut to {self._length} tokens."
            )
        return found

    def _tell_useful(self, count: int, kept: int, part: str) -> None:
        """How many of `count` samples are left out. Raises `DataFailed` where none is kept."""
        if not kept:
            raise DataFailed(
                f"{self.name}: nothing to {part}: no sample has a token that counts in the loss",
                "Give more text, a larger length, or let more than answers count.",
            )
        if left := count - kept:
            self.notes.append(
                f"{left} of {count} samples to {part} have no token that counts in the loss: "
                "left out."
            )


def known_tokens(definition: LoadedDefinition) -> int | None:
    """How many tokens a model knows: as it says, else the largest of its embeddings, which is
    looked for in its shapes; None where neither is to be found."""
    if definition.texts.vocabulary is not None:
        return definition.texts.vocabulary
    try:
        with torch.random.fork_rng(devices=()), torch.device("meta"):
            modules = definition.build().modules()
    except Exception:  # a person's code that wants values: the model is not the worse for it
        return None
    return max((m.num_embeddings for m in modules if isinstance(m, nn.Embedding)), default=None)
