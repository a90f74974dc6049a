"""Python is parsed while other threads parse too."""

import ast
import threading

import pytest

from backend.definitions import syntax
from backend.definitions.syntax import TRIES, syntax_tree

MISMATCH = SystemError("AST constructor recursion depth mismatch (before=108, after=11)")


def test_a_tree_is_given_as_python_gives_it() -> None:
    text = "def model():\n    return 1\n"
    assert ast.dump(syntax_tree(text)) == ast.dump(ast.parse(text))
    assert ast.dump(syntax_tree(text.encode())) == ast.dump(ast.parse(text))


def test_what_is_no_python_is_told() -> None:
    with pytest.raises(SyntaxError):
        syntax_tree("def model(:")


@pytest.mark.parametrize("failures", [1, TRIES - 1])
def test_a_text_is_parsed_again_where_another_thread_came_between(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    left = [MISMATCH] * failures
    parse = ast.parse

    def disturbed(text: str) -> ast.Module:
        if left:
            raise left.pop()
        return parse(text)

    monkeypatch.setattr(syntax.ast, "parse", disturbed)
    assert isinstance(syntax_tree("x = 1"), ast.Module)
    left.extend([MISMATCH] * TRIES)
    with pytest.raises(SystemError, match="mismatch"):
        syntax_tree("x = 1")


def test_threads_at_several_depths_parse_at_once() -> None:
    text = "\n".join(f"def f{n}(a, b=({n},)): return [a + b for a in b]" for n in range(100))
    faults: list[BaseException] = []

    def parses(depth: int) -> None:
        if depth:
            parses(depth - 1)
            return
        try:
            for _ in range(30):
                assert len(syntax_tree(text).body) == 100
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=parses, args=(depth,)) for depth in (0, 40, 80)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
