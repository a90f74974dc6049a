"""Pages of the guide are short, links lead somewhere, and words are the glossary's."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
DOCS = TOP / "docs"
PAGES = sorted((*TOP.glob("*.md"), TOP / "docker" / "README.md", *DOCS.rglob("*.md")))
LONGEST = 800  # words
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"\b((?:docs|tests)/[\w/-]+\.(?:md|py))\b")
CODE = re.compile(r"```.*?```|`[^`\n]+`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
IMPORTS = re.compile(r"<!-- imports: begin.*?-->\n```\n(.*?)```\n<!-- imports: end -->", re.DOTALL)

REPLACED = {
    "appetite": "memory limit",
    "bell": "notifier",
    "door": "route, interface",
    "doorbell": "wake",
    "doors": "routes",
    "handling": "message overhead",
    "journal": "event writer",
    "knock": "wake",
    "lane": "parallel pipeline",
    "lanes": "parallel pipelines",
    "leftover": "spool recovery",
    "leftovers": "spool recovery",
    "maker": "producer",
    "makers": "producers",
    "parting": "graceful stop",
    "renewal": "out-of-place update",
    "rhythm": "number of warm-up microbatches, delay of weight gradients",
    "rhythms": "number of warm-up microbatches, delay of weight gradients",
    "seat": "rank coordinates",
    "seated": "rank coordinates",
    "seats": "rank coordinates",
    "taker": "consumer",
    "takers": "consumers",
    "ties": "tied weights",
    "upkeep": "weight-update cost",
    "verdict": "failure",
    "wire": "link",
    "wires": "links",
}
"""Words that no page uses any more, with those of the glossary; names of code are exempt."""


def _name(page: Path) -> str:
    return str(page.relative_to(TOP))


def _prose(page: Path) -> str:
    return CODE.sub(" ", page.read_text())


@pytest.mark.parametrize("page", sorted((DOCS / "guide").glob("*.md")), ids=_name)
def test_a_page_of_the_guide_is_short(page: Path) -> None:
    words = [word for word in page.read_text().split() if re.search(r"\w", word)]
    assert len(words) <= LONGEST


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not heading or heading in _headings(target), link


def _headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pages_and_tests_that_a_page_names_are_there(page: Path) -> None:
    missing = {name for name in NAMED.findall(page.read_text()) if not (TOP / name).exists()}
    assert not missing


def test_pages_that_the_code_names_are_there() -> None:
    assert not {named for named in _named_by_code() if not (TOP / named).exists()}


def _named_by_code() -> Iterator[str]:
    for folder in ("app", "backend", "workers", "tests"):
        for file in (TOP / folder).rglob("*.py"):
            yield from re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_words_are_those_of_the_glossary(page: Path) -> None:
    words = set(re.findall(r"[a-z]+", _prose(page).lower()))
    assert not {word: REPLACED[word] for word in words & REPLACED.keys()}


def test_every_page_of_guide_and_evidence_is_in_the_index() -> None:
    listed = set(LINK.findall((DOCS / "README.md").read_text()))
    pages = {str(page.relative_to(DOCS)) for page in PAGES if page.parent.parent == DOCS}
    assert {page for page in pages if not page.startswith("decisions/")} <= listed


def test_contributing_shows_the_import_contracts() -> None:
    shown = IMPORTS.search((TOP / "CONTRIBUTING.md").read_text())
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())
    names = [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]
    assert shown
    assert shown[1].splitlines() == [f"{name} KEPT" for name in names]
