"""`stageflow plan` by an order from a file, and by one that is found: kept, to be run."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.app import seed
from tests.cli.conftest import Command


@pytest.fixture
def profile_id(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    with closing(seed.fresh()) as backend:
        plan = backend.plans.get(seed.everything(backend).plan)
        return str(plan.profile_id)


def test_an_order_from_a_file_is_kept(stageflow: Command, profile_id: str, tmp_path: Path) -> None:
    file = tmp_path / "order.csv"
    asked = "--schedule zb-h1 --pipeline-size 2 --microbatches 4 --format csv".split()
    assert stageflow("program", "export", *asked, "-o", str(file)).code == 0
    by = ("plan", "--profile", profile_id, "--devices", "2", "--order", str(file))
    found = stageflow(*by, "--save", "--json").json
    out = stageflow("program", "export", "--plan", str(found["plan_id"]), "-f", "csv").out
    assert out.split() == file.read_text().split()
    file.write_text(file.read_text().replace("0F0,", ""))
    said = stageflow(*by)
    assert (said.code, "the program is unsound" in said.err) == (1, True)


def test_an_order_is_found_by_name(stageflow: Command, profile_id: str) -> None:
    asked = ("plan", "--profile", profile_id, "--devices", "2", "--planner", "straight", "--json")
    found, other = (
        stageflow(*asked, "--schedule", name, *extra).json
        for name, extra in (("synthesised", ("--save",)), ("zb-h1", ()))
    )
    assert found["schedule"] == "synthesised"
    assert found["samples_per_second"] >= other["samples_per_second"]
    out = stageflow("program", "export", "--plan", str(found["plan_id"])).out
    assert out.startswith("schedule synthesised")
