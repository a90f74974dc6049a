"""A syntax tree of Python's, whatever other threads parse meanwhile."""

import ast

TRIES = 20


def syntax_tree(text: str | bytes) -> ast.Module:
    """What `ast.parse` gives and raises.

    CPython 3.11 counts the depth of the trees that it builds once for all threads, and raises
    `SystemError` where another thread came between (seen with 3.11.7; CPython's issue 106905).
    Streamlit parses pages so at any time.
    """
    for _ in range(TRIES - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
