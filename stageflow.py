"""Stageflow in a notebook: `import stageflow`; the guide is docs/guide/notebooks.md.

Nothing else is imported until a name is asked for, so that the import itself takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.client import ApiProblem as ApiProblem
    from app.notebook.planning import plan as plan
    from app.notebook.planning import simulate as simulate
    from app.notebook.profiles import read_profile as read_profile
    from app.notebook.profiling import profile as profile
    from app.notebook.server import connect as connect
    from backend.errors import StageflowError as StageflowError

_PLACES = {
    "ApiProblem": "app.client",
    "StageflowError": "backend.errors",
    "connect": "app.notebook.server",
    "plan": "app.notebook.planning",
    "profile": "app.notebook.profiling",
    "read_profile": "app.notebook.profiles",
    "simulate": "app.notebook.planning",
}
__all__ = (
    "ApiProblem",
    "StageflowError",
    "connect",
    "plan",
    "profile",
    "read_profile",
    "simulate",
)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'stageflow' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
