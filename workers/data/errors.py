"""Errors that a person's data cause: the file, what is wrong with it, and what to do."""

from backend.errors import StageflowError


class DataFailed(StageflowError):
    """A file or folder of data cannot be read, or holds what no model can learn from."""

    advice = "Correct the data, or choose other columns; `stageflow run --help` lists the forms."
