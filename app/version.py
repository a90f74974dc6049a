"""Which Stageflow this is."""

from importlib.metadata import PackageNotFoundError, version


def stageflow_version() -> str:
    """As it is installed; "unknown" where it is not."""
    try:
        return version("stageflow")
    except PackageNotFoundError:
        return "unknown"
