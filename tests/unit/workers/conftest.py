"""Definitions written on the spot, and those of the zoo."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import workers.zoo
from workers.definitions.loader import Definition, load

ZOO = Path(workers.zoo.__file__).parent


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a definition file; every text gets the usual imports in its first three lines."""

    def write(text: str) -> Path:
        head = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
        file = tmp_path / "mine.py"
        file.write_text(head + textwrap.dedent(text))
        return file

    return write


@pytest.fixture
def define(write: Callable[[str], Path]) -> Callable[[str], Definition]:
    return lambda text: load(write(text))


@pytest.fixture(scope="session")
def zoo() -> Callable[[str], Definition]:
    return lambda name: load(ZOO / f"{name}.py")
