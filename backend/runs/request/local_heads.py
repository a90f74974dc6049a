"""The heads from which the stages of a schedule with local losses learn, by name."""

from dataclasses import dataclass
from typing import Literal

LocalHead = Literal["", "linear", "similarity", "low-rank"]
"""A name of `LOCAL_HEADS`; "" = `LINEAR` for classes and values, `LOW_RANK` for tokens."""
LINEAR, SIMILARITY, LOW_RANK = "linear", "similarity", "low-rank"


@dataclass(frozen=True, slots=True)
class LocalHeadKind:
    """A member of the catalog: `title` is for people, `source` the paper or what is ours."""

    title: str
    source: str


LOCAL_HEADS = {
    LINEAR: LocalHeadKind(
        "Linear, on pooled features",
        "the loss of prediction: Nøkland and Eidnes, ICML 2019, section 2.2",
    ),
    SIMILARITY: LocalHeadKind(
        "Prediction and similarity matching",
        "both losses together: Nøkland and Eidnes, ICML 2019, sections 2.1 to 2.3",
    ),
    LOW_RANK: LocalHeadKind(
        "Low rank, for large vocabularies",
        "two factors in place of a matrix (ours)",
    ),
}
