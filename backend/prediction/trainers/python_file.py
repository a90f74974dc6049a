"""Python files for other trainers: what it is of in words, constants, and functions."""

from collections.abc import Sequence
from textwrap import fill


def python_file(
    trainer: str, sentences: Sequence[str], use: str, imports: str, *constants: str, code: str = ""
) -> bytes:
    """A module whose docstring says what is in it and how it is used."""
    said = "\n".join(map(in_docstring, sentences))
    lines = "\n".join(constants)
    head = f'"""A plan by Stageflow, for {trainer}.\n\n{said}\n{use}"""\n'
    return f"{head}\n{imports}\n{lines}\n{code}".encode()


def in_docstring(sentence: str) -> str:
    """A sentence in lines, of names that nobody wrote for a docstring."""
    bare = sentence.replace("\\", "/").replace('"', "'")
    return fill("".join(c for c in bare if c.isprintable()), 98, break_long_words=False)


def rows(items: Sequence[str], around: str) -> str:
    """A literal with an item per line; `around` are its brackets."""
    return around[0] + "\n" + "".join(f"    {item},\n" for item in items) + around[1]
