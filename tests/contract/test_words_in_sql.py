"""Words that are SQL, in everything that runs are found by: they are words."""

from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.runs.history.labels import Change
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.request.spec import ProfileSpec

WORDS = (
    "'; DROP TABLE runs; --",
    "' OR '1'='1",
    '" OR ""="',
    "1); DELETE FROM runs; --",
    "' UNION SELECT password FROM people --",
    "%' OR 1=1 --",
    "\\'; SELECT pg_sleep(9); --",
    "$$; COPY runs TO PROGRAM 'id'; $$",
    "%",
    "_",
    "/",
    "\N{FULLWIDTH APOSTROPHE} OR 1=1",
    ":name %(name)s {name} ?",
)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_finds_itself_and_nothing_else(
    backend: Backend, definition: Definition, word: str
) -> None:
    plain = backend.runs.submit(ProfileSpec(definition.id), "plain")
    marked = backend.runs.submit(ProfileSpec(definition.id), "marked")
    backend.labels.change([marked.id], Change(note=f"a {word} b", tags=(word,)))
    asked = (RunFilter(text=word), RunFilter(tag=word), RunFilter(text=word, tag=word))
    for wanted in asked:
        for sort in RunSort:
            found = backend.runs.list(wanted, order=RunOrder(sort))
            assert [run.id for run in found.runs] == [marked.id]
            assert found.total == 1
        assert backend.runs.list(replace(wanted, owner=word)).total == 0
    assert {run.id for run in backend.runs.list().runs} == {plain.id, marked.id}
    assert word in backend.labels.tags()
