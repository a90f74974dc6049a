"""Columns of a table as numbers, by what the samples to train on have: categories, means."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from backend.runs.request.sample_specs import TableSpec
from backend.units import count_text
from workers.data.errors import DataFailed
from workers.data.values import whole
from workers.definitions.samples import Samples, tensors

UNKNOWN = 0
"""The number of words that no sample to train on has, and of empty cells among words."""


@dataclass(frozen=True, slots=True)
class FittedColumns:
    """`rows` are those to train on; `like` the inputs of the model's example (None: it has none).
    `notes` tell the categories of each column."""

    rows: Tensor
    spec: TableSpec = field(default_factory=TableSpec)
    like: Samples | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def takes_numbers_of_words(self) -> bool:
        """Whether the model is given a category's number, for an embedding; else one column per
        category, which is 1 or 0."""
        return self.like is not None and any(map(whole, tensors(self.like)))

    def of_words(self, column: pa.ChunkedArray, name: str) -> Tensor:
        """(samples,) numbers of categories, or (samples, categories) of 1 and 0."""
        train = column.take(pa.array(self.rows.numpy()))
        known = sorted(word for word in pc.unique(train).to_pylist() if word is not None)
        found = pc.index_in(column, pa.array(known, column.type)).fill_null(-1)
        numbers = torch.tensor(found.to_pylist(), dtype=torch.long) + 1
        self.notes.append(
            f"{name}: {len(known) + 1} categories; {UNKNOWN} is what training has not seen, "
            f"1 is {known[0]!r}."
            if known
            else f"{name}: no word to train on."
        )
        if self.takes_numbers_of_words:
            return numbers
        return torch.nn.functional.one_hot(numbers, len(known) + 1).float()

    def of_numbers(self, column: pa.ChunkedArray, name: str, file: str) -> pa.Array:
        """The column with empty cells filled and fractions standardised, as far as asked for."""
        is_real = pa.types.is_floating(column.type)
        if not self.spec.standard and not self.spec.fill:
            return column
        values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        empty = np.isnan(values)
        if not empty.any() and not (is_real and self.spec.standard):
            return column
        train = values[self.rows.numpy()]
        given = train[~np.isnan(train)]
        if self.spec.fill:
            if not len(given):
                raise DataFailed(
                    f"{file}: column {name!r} has no number in the samples to train on",
                    "Leave this column out.",
                )
            values = np.where(empty, given.mean(), values)
        if is_real and self.spec.standard:
            deviation = float(given.std()) if len(given) else 0.0
            values = (values - (given.mean() if len(given) else 0.0)) / (deviation or 1.0)
        return pa.chunked_array([pa.array(values, from_pandas=True)])

    def arranged(self, numbers: Tensor | None, words: list[Tensor]) -> Samples:
        """Numbers and categories as the model's example has them: fractions before or behind whole
        numbers, by name or in order."""
        categories = torch.stack(words, 1)
        if numbers is None:
            return categories
        like = self.like
        assert like is not None, "only an example asks for numbers of words"
        kinds = [whole(each) for each in tensors(like)]
        if sorted(kinds) != [False, True]:
            raise DataFailed(
                f"the model takes {count_text(len(kinds), 'input')}, and the table has numbers "
                "and categories",
                "Let its example give two: fractions (samples, columns) and whole numbers "
                "(samples, columns of words); or one of fractions, for columns of 1 and 0.",
            )
        found = tuple(categories if is_whole else numbers for is_whole in kinds)
        return dict(zip(like, found, strict=True)) if isinstance(like, dict) else found
