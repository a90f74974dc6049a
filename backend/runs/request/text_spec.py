"""What a person says of texts: how they become tokens, and tokens samples."""

from dataclasses import dataclass
from typing import Literal

TextTask = Literal["causal", "masked", "seq2seq"]


@dataclass(frozen=True, slots=True)
class TextSpec:
    """Counts for the forms of data that hold texts.

    tokenizer  a tokenizer.json on the node, or the folder that it lies in, within one that its
               operator allows; "" = none, a form's own way
    task       what is learned: the next token ("causal"), tokens that are hidden ("masked"), or
               one text from another ("seq2seq")
    packing    texts follow each other in samples that are full; else each is a sample
    answers    only answers count: the text of the target column, an assistant's messages
    template   of chats, in Jinja; "" = the tokenizer's own
    masked     share of the tokens that are hidden
    """

    tokenizer: str = ""
    task: TextTask = "causal"
    packing: bool = False
    answers: bool = False
    template: str = ""
    masked: float = 0.15
