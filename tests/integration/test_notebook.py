"""The notebook of the documentation in a real kernel, from its first cell to its last."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import stageflow

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "planning.ipynb"


@pytest.mark.slow
def test_the_notebook_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [
        output["data"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    html = "".join(str(data.get("text/html", "")) for data in shown)
    assert "profile Sequential: 8 layers" in html
    assert "1-1-1-1 · 1f1b-flush" in html
    assert html.count("<iframe") == 2
    assert sum("image/png" in data for data in shown) == 2
    assert sum("application/vnd.plotly.v1+json" in data for data in shown) == 2
    printed = "".join(o.get("text", "") for c in notebook.cells for o in c.get("outputs", []))
    assert "for torch.distributed.pipelining" in printed


def test_what_cannot_be_profiled_says_why(tmp_path: Path) -> None:
    import torch

    module = torch.nn.Linear(3, 2)
    with pytest.raises(stageflow.StageflowError, match="none were given"):
        stageflow.profile(module)
    wrong = (torch.randn(4, 5), torch.randint(2, (4,)))
    with pytest.raises(stageflow.StageflowError, match="cannot be multiplied") as fault:
        stageflow.profile(module, 2, example=wrong)
    assert fault.value.advice
    with pytest.raises(stageflow.StageflowError, match="no model of that name in the zoo"):
        stageflow.profile(str(tmp_path / "none.py"))
    squares = stageflow.profile(
        module,
        2,
        example=(torch.randn(4, 3), torch.randn(4, 2)),
        loss=lambda output, target: ((output - target) ** 2).mean(),
        repetitions=1,
    )
    assert (len(squares.profile.layers), squares.profile.microbatch) == (1, 2)
