"""Writes docs/evidence/captures.md: python -m tests.contract.captures.page"""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.contract.captures.lists import ARCHITECTURE_NAMES, FILE_NAMES
from tests.contract.captures.rows import PAGE, row, uncut_row
from tests.contract.captures.training import captured, file_of
from tests.contract.captures.uncut import UNCUT, UNCUT_ARCHITECTURES

HEAD = """# Models that are cut, and those that are not

Written by `python -m tests.contract.captures.page`; tests hold every row to what they find. Each of
the {count} models of the first two tables is captured, profiled, planned for two devices and
trained for two epochs (`tests/contract/test_captured_*.py`). Two stages end with the losses and
weights of one to the last bit, and one is within 1e-6 of a plain PyTorch loop. They are small, in
float32, and without dropout, whose noise is drawn by stage.

How a model's operations are found ([cuts](../guide/cuts.md)): by *stand-ins* (`torch.fx`), or as
*operations* (`torch.export`).

Exceptions: tensors of convnext, fourier and mamba lie in memory in another order than their shape
says.
Behind a cut they do not, and kernels may round otherwise: two stages are within 1e-6 of one. Not in
the tables: RWKV, which changes its weights where it evaluates, so that its body is one layer; LED,
which decides by values as Longformer does; and an `nn.LSTM` of several layers, which torch computes
in one operation, so that it is one layer. Its note says what to write in its place.
"""
CUT = "\n| model | what it is | found by | notes |\n|---|---|---|---|\n"


def write(folder: Path) -> None:
    """All tables anew."""
    files, architectures = (
        [row(name, captured(file_of(folder, name)).profile) for name in names]
        for names in (FILE_NAMES, ARCHITECTURE_NAMES)
    )
    PAGE.write_text(
        HEAD.format(count=len(files) + len(architectures))
        + "\n## Files of one's own\n"
        + CUT
        + _lines(files)
        + "\n## Architectures of transformers\n"
        + CUT
        + _lines(architectures)
        + "\n## What is not cut, and what its profile says\n"
        + "\n| model | its note |\n|---|---|\n"
        + _lines(uncut_row(name, uncut_file(folder, name)) for name in uncut_names())
    )


def uncut_names() -> tuple[str, ...]:
    """Of all models that are one layer."""
    return (*UNCUT, *UNCUT_ARCHITECTURES)


def uncut_file(folder: Path, name: str) -> Path:
    """Of one of them."""
    if name in UNCUT_ARCHITECTURES:
        return file_of(folder, name)
    file = folder / "net.py"
    file.write_text(UNCUT[name])
    return file


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
