"""The trackers that settings name, by their addresses."""

from collections.abc import Callable, Mapping
from pathlib import Path

from backend.setting_values import tracker_kind
from backend.settings import Settings
from backend.trackers.mlflow import Mlflow
from backend.trackers.mlflow_server import mlflow_server
from backend.trackers.tensorboard import TensorBoard
from backend.trackers.tracker import Tracker
from backend.trackers.wandb import wandb_at

CATALOG: Mapping[str, Callable[[str, Path], Tracker]] = {
    "tensorboard": lambda _, home: TensorBoard(home / "tensorboard"),
    "mlflow": lambda address, _: Mlflow(mlflow_server(address)),
    "wandb": lambda address, home: wandb_at(address, home / "wandb"),
}
"""By kind, the tracker of an address and the home."""


def trackers_of(settings: Settings) -> dict[str, Tracker]:
    """By name, those of `settings.trackers`."""
    found = [CATALOG[tracker_kind(each)](each, settings.home) for each in settings.trackers.split()]
    return {tracker.name: tracker for tracker in found}
