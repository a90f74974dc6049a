"""Nobody outside `backend/pipeline/schedules` asks which schedule it is: a schedule says itself
what a reader must know of it."""

import ast
from pathlib import Path

import pytest

from backend.cluster.presets import PRESETS
from backend.pipeline.bubbles import Idle, idle_causes, total
from backend.pipeline.held import in_flight, most
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.pipeline.schedules.custom import CUSTOM
from backend.pipeline.schedules.depth import StageDepth
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import check
from backend.planning.catalog import PLANNERS
from backend.prediction.uniform import UniformDurations

ROOT = Path(__file__).parents[3]
NAMES = {*SCHEDULES, CUSTOM.name} - set(PLANNERS) - set(PRESETS)
"""Without those that are a planner's name too, or a cluster's, which may be asked for."""
FOLDERS = ("app", "backend", "workers")


def compared(text: str) -> list[int]:
    """The lines in which a schedule's name is compared or matched."""
    found = []
    for node in ast.walk(ast.parse(text)):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.MatchValue):
            parts = [node.value]
        named = [leaf.value for part in parts for leaf in ast.walk(part) if is_text(leaf)]
        if NAMES & set(named):
            found.append(node.lineno)
    return found


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_nobody_compares_a_schedules_name():
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    guilty = {}
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        if not path.startswith("backend/pipeline/schedules/") and (
            lines := compared(file.read_text())
        ):
            guilty[path] = lines
    assert guilty == {}


@pytest.mark.parametrize(
    "text", ['x == "gpipe"', '"afp" in names', 'name in ("2bw", "zb-h1")', 'x.name != "zb-h2"']
)
def test_a_comparison_is_found(text):
    assert compared(text) == [1]
    assert compared(f'pick = "gpipe" if {text} else None') == [1]
    assert compared('schedule("gpipe")') == []


def test_a_new_schedule_is_its_value_and_a_line_in_the_catalog(monkeypatch):
    """It is ordered, verified, simulated and held to its memory by what it says of itself."""
    eager = Schedule("eager", "Two more forwards than 1F1B", "us", lambda at: at.in_flight + 2)
    monkeypatch.setitem(SCHEDULES, eager.name, eager)
    program = check(lower(eager, Shape((1, 1, 1), 8, 8)))
    assert most(program, in_flight(program.rows)) == [5, 4, 3]
    assert [eager.in_flight(coordinates) for coordinates in program.shape.coordinates] == [5, 4, 3]
    timeline = simulate(program, UniformDurations(1.0, 2.0))
    assert timeline.makespan == pytest.approx(3 * (8 + 3 - 1))
    assert total(idle_causes(program, timeline))[Idle.WARM_UP] > 0


def test_a_stage_that_is_not_planned_yet_asks_as_a_rank_does():
    shape = Shape((2, 3, 1, 2), 24, 12, advance=2)
    for member in SCHEDULES.values():
        for pipeline_rank, here in enumerate(shape.replicas):
            before, behind = (
                sum(shape.replicas[:pipeline_rank]),
                sum(shape.replicas[pipeline_rank + 1 :]),
            )
            stage = StageDepth.of(before, here, behind, shape.batch, shape.advance)
            coordinates = shape.coordinates[before]
            if member.trains and not member.chunked:
                assert member.in_flight(stage) == member.in_flight(coordinates)
                assert member.live(stage) == member.live(coordinates)
