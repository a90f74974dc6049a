"""`stageflow simulate`: the published figures, causes, and the trace."""

import json
from pathlib import Path

import pytest

from backend.pipeline.exchange.chrome_trace import read_trace

TIMES = "--forward 18.522e-3 --backward 18.086e-3 --backward-weight 9.337e-3 --transfer 0.601e-3"


@pytest.mark.parametrize(
    ("schedule", "published"), [("1f1b-flush", 0.2431), ("zb-h1", 0.1585), ("zb-h2", 0.1083)]
)
def test_published_bubble_rates(stageflow, schedule, published):
    """Zero-bubble paper, tables 5 and 9: 1.5B, p=8, m=24."""
    said = stageflow(
        *f"simulate --schedule {schedule} --positions 8 --microbatches 24 --json".split(),
        *TIMES.split(),
    )
    assert round(said.json["bubble_rate"], 4) == published
    busy = 8 * 24 * (18.522e-3 + 18.086e-3 + 9.337e-3)
    idle = sum(said.json["causes"].values())
    makespan = said.json["makespan"]
    assert busy + idle >= 8 * makespan - 1e-9
    assert sum(sum(one.values()) for one in said.json["causes_per_rank"]) == pytest.approx(idle)


def test_interleaving_divides_the_bubble_by_its_chunks(stageflow):
    """(p-1)/(v m) of the ideal time, here 3/16 of 24 seconds."""
    said = stageflow(
        *"simulate --schedule interleaved --positions 4 --microbatches 8 --chunks 2".split(),
        *"--forward 1 --backward 1 --backward-weight 1 --json".split(),
    )
    assert said.json["makespan"] == pytest.approx(24 * (1 + 3 / 16))
    assert said.json["in_flight"] == [11, 9, 7, 5]


def test_running_ahead_of_1f1b(stageflow):
    times = ("--pipeline-size", "2", "--microbatches", "40", "--forward", "1", "--backward", "2")
    spent = []
    for ahead, held in ((0, [2, 1]), (1, [3, 1])):
        more = ("--schedule", "pipedream", "--run-ahead", str(ahead), "--transfer", "1.5")
        told = stageflow("simulate", *times, *more, "--json").json
        assert (told["run_ahead"], told["in_flight"], told["versions"]) == (ahead, held, held)
        spent.append(told["makespan"])
    assert spent[1] < 0.75 * spent[0]
    said = stageflow("simulate", *times, "--run-ahead", "1")
    assert said.code == 1
    assert "takes no further microbatches in flight" in said.err


def test_the_advance_of_afp(stageflow):
    for advance, held in ((0, [4, 3, 2, 1]), (1, [7, 5, 3, 1]), (2, [10, 7, 4, 1])):
        said = stageflow(
            *"simulate --schedule afp --positions 4 --microbatches 12 --forward 1".split(),
            *f"--backward 1 --advance {advance} --json".split(),
        )
        assert said.json["in_flight"] == held


def test_2bw_keeps_two_versions(stageflow):
    said = stageflow(
        *"simulate --schedule 2bw --positions 4 --microbatches 16 --forward 1".split(),
        *"--backward 1 --json".split(),
    )
    assert said.json["versions"] == [2, 2, 2, 2]
    assert said.json["batch"] == 4


def test_the_trace_holds_every_action(stageflow, tmp_path: Path):
    path = tmp_path / "trace.json"
    said = stageflow(
        *"simulate --schedule gpipe --positions 2 --microbatches 3 --forward 1".split(),
        *f"--backward 2 --trace {path}".split(),
    )
    assert said.code == 0
    assert "perfetto" in said.out
    assert json.loads(path.read_text())["displayTimeUnit"] == "ms"
    assert read_trace(path.read_text()).makespan == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--schedule gpipe --chunks 2", "runs one stage per pipeline rank"),
        ("--schedule interleaved --chunks 2 --positions 3", "not a multiple"),
        ("--schedule gpipe --trace /nowhere/at/all.json", "all.json: No such file or directory"),
    ],
)
def test_what_cannot_be_is_said(stageflow, options, message):
    said = stageflow(
        *"simulate --positions 2 --microbatches 4 --forward 1 --backward 1".split(),
        *options.split(),
    )
    assert said.code == 1
    assert message in " ".join(said.err.split())
    assert "Traceback" not in said.err
