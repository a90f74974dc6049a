"""A search over everything that has a page: by name, and by number."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.history.listing import RunFilter
from backend.whole import is_whole

MOST = 5
"""Of each kind."""
PAGES = {
    "Start": Page.START,
    "Help": Page.HELP,
    "Models": Page.MODELS,
    "Profile": Page.PROFILE,
    "Plan": Page.PLAN,
    "Compare schedules": Page.SCHEDULES,
    "What if": Page.WHAT_IF,
    "Runs": Page.RUNS,
    "Sweeps": Page.SWEEPS,
    "Compare": Page.COMPARE,
    "Launch": Page.LAUNCH,
    "Nodes": Page.NODES,
    "Notifications": Page.NOTIFICATIONS,
}


@dataclass(frozen=True, slots=True)
class Hit:
    """`label` is text; the link leads to `page` with `params`."""

    kind: str
    label: str
    page: Page
    params: tuple[tuple[str, object], ...] = ()


def search(backend: Backend, text: str) -> list[Hit]:
    """What has `text` in its name, whatever the case, or as its number; runs also by note, tag and
    owner. At most `MOST` of each kind, and nothing for no text."""
    text = text.strip()
    return list(_hits(backend, text)) if text else []


def _hits(backend: Backend, text: str) -> Iterator[Hit]:
    yield from _named(text, (Hit("page", name, page) for name, page in PAGES.items()))
    number = int(text) if is_whole(text) else 0
    runs = [*backend.runs.several([number])] if number else []
    runs += backend.runs.list(RunFilter(text=text), MOST).runs
    for run in {run.id: run for run in runs}.values():
        label = f"{run.id} · {run.name} · {run.state.value}"
        yield Hit("run", label, Page.RUN, (("id", run.id),))
    for things in _of_other_kinds(backend):
        yield from _named(text, things)


def _of_other_kinds(backend: Backend) -> Iterator[Iterable[Hit]]:
    yield (
        Hit("sweep", f"{each.id} · {each.name}", Page.SWEEPS, (("id", each.id),))
        for each in backend.sweeps.newest()
    )
    yield (
        Hit("plan", f"{each.id} · {each.name}", Page.PLAN, (("plan", each.id),))
        for each in backend.plans.list()
    )
    yield (
        Hit("profile", f"{each.id} · {each.profile.name}", Page.PROFILE, (("id", each.id),))
        for each in backend.profiles.list()
    )
    yield (
        Hit("model", each.label, Page.MODELS, (("id", each.id),))
        for each in backend.definitions.list()
    )
    yield (Hit("cluster", each.name, Page.NODES) for each in backend.clusters.list())
    yield (Hit("node", each.name, Page.NODES) for each in backend.nodes.list())


def _named(text: str, things: Iterable[Hit]) -> Iterator[Hit]:
    """The first of those whose label has the text."""
    return islice((hit for hit in things if text.casefold() in hit.label.casefold()), MOST)
