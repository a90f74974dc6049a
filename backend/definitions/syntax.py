"""A syntax tree of Python's, whatever other threads parse meanwhile."""

import ast

TRIES = 20


def syntax_tree(text: str | bytes) -> ast.Module:
    """What `ast.parse` gives and raises.

    Up to 3.11.7 and 3.12.1, CPython counts the depth of the trees that it builds once for all
    threads, and raises `SystemError` where another thread came between (gh-106905). Streamlit
    parses pages so at any time.
    """
    for _ in range(TRIES - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
