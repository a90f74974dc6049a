"""What a setting may hold, beyond its type."""

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field


def absolute(path: Path) -> Path:
    """From the root on. Raises `ValueError` where there can be no such path."""
    try:
        found = path.expanduser().absolute()
        str(found).encode()  # it becomes part of URLs
    except RuntimeError:  # "~name" of nobody
        raise ValueError("nobody of that name has a home here") from None
    except UnicodeEncodeError:
        raise ValueError("a path whose name is no UTF-8") from None
    return found


def folder(text: str) -> str:
    """A folder from the root on, or none. Raises `ValueError`."""
    return str(absolute(Path(text))) if text else ""


def folders(text: str) -> str:
    """Folders as the system separates them, each of which there could be. Raises `ValueError`."""
    for part in text.split(os.pathsep):
        absolute(Path(part))
    return text


def url(text: str) -> str:
    """A URL that has a host and a port, or neither. Raises `ValueError`, without the parser's own
    words: they hold parts of the URL, which may be a password."""
    try:
        _ = urlsplit(text).port
    except ValueError:
        raise ValueError("no URL of a host and a port") from None
    return text


TRACKER = re.compile(
    r"tensorboard|mlflow\+(https?|sqlite|file)://.+|wandb://.+|wandb\+(https?|offline)://.+"
)
"""The address of an experiment tracker."""


def tracker_kind(address: str) -> str:
    """What stands in front of an address's first "+" or ":"."""
    return address.partition(":")[0].partition("+")[0]


def tracker_addresses(text: str) -> str:
    """Addresses of trackers, one of a kind. Raises `ValueError`, without a word of them."""
    kinds = [tracker_kind(url(word)) for word in text.split()]
    if not all(map(TRACKER.fullmatch, text.split())):
        raise ValueError(
            "no tracker; there are tensorboard, mlflow+http://HOST:PORT and wandb://KEY@/PROJECT"
        )
    if len(set(kinds)) < len(kinds):
        raise ValueError("two trackers of one kind")
    return text


Seconds = Annotated[float, Field(gt=0, le=1e9)]
"""What a clock can wait: thirty years and no more."""
Amount = Annotated[int, Field(gt=0, le=2**62)]
"""What the kernel takes as a limit."""
