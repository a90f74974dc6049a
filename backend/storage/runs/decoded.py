"""The row of a run as a value; an unreadable one is a run that says so, and hides no other."""

from collections.abc import Sequence
from typing import Any

from backend.errors import InvalidInput
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run, RunError, RunSummary
from backend.storage.look_up import value_of

UNREADABLE = "RecordUnreadable"
ADVICE = (
    "Delete the run, or restore the database from a backup. `stageflow doctor --deep` names every "
    "such run."
)


def run_of(row: Any, tags: Sequence[str]) -> Run:
    """Whatever the row's JSON columns hold."""
    try:
        return value_of(Run, row, tags=tuple(tags))
    except InvalidInput as fault:
        error = RunError(UNREADABLE, f"the record of run {row.id} is unreadable: {fault}", ADVICE)
    known: dict[str, Any] = {"progress": None, "summary": RunSummary(), "fallbacks": ()}
    try:
        return value_of(Run, row, tags=tuple(tags), error=error, **known)
    except InvalidInput:
        spec = ProfileSpec(row.definition_id)
        return value_of(Run, row, tags=tuple(tags), error=error, spec=spec, **known)
