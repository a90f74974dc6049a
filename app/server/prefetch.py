"""What the first visitor would wait for, done before anybody can come."""

import gc
import pkgutil
from importlib import import_module
from types import ModuleType

from app.server.connection import connected
from backend.errors import StageflowError

LIBRARIES = ("pandas", "plotly.graph_objects")
"""What Streamlit and the charts import when they draw for the first time."""


def prefetch(*packages: ModuleType) -> None:
    """Import what pages draw with (the modules of `packages`), and ask the database once as they
    do. What is there then stays, and the garbage collector need not look through it again, for
    0.1 s each time."""
    for name in (*LIBRARIES, *(name for package in packages for name in modules(package))):
        import_module(name)
    _ask()
    gc.collect()
    gc.freeze()


def _ask() -> None:
    try:
        connected().runs.list(limit=1)
    except StageflowError:  # the page that is opened says it, with what to do
        return


def modules(package: ModuleType) -> list[str]:
    """The names of the modules below `package`, in its folders too."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [module.name for module in found if not module.ispkg]
