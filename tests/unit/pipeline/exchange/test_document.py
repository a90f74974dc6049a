import json

import pytest

from backend.errors import InvalidInput
from backend.pipeline.exchange.document import read_program, write_program
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("recompute", [False, True])
def test_programs_come_back(name, recompute):
    program = lower(SCHEDULES[name], Shape((3, 1, 2), 24, 12, advance=2, recompute=recompute))
    assert read_program(write_program(program)) == program


def test_pipelines_and_chunks_come_back():
    program = lower(schedule("interleaved"), Shape((1, 1), 16, 4, chunks=2, num_pipelines=2))
    assert read_program(write_program(program)) == program


def written(**changes):
    document = json.loads(write_program(lower(schedule("gpipe"), Shape((1, 1), 2, 2))))
    return json.dumps(document | changes)


def test_it_says_what_it_is():
    document = json.loads(written())
    assert (document["format"], document["version"]) == ("stageflow-program", 1)
    assert document["shape"]["replicas"] == [1, 1]
    assert document["ranks"][1].startswith("<0:a0.0 1F0@0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version"),
        ({"format": "other"}, "format"),
        ({"ranks": ["0F0@0"]}, "ranks: 1 are written, the shape has 2"),
        ({"ranks": ["0F0@0", "1Q0"]}, "ranks.1: '1Q0' is not an action"),
        ({"shape": {"replicas": [2], "microbatches": 3}}, "3 microbatches cannot be shared"),
    ],
)
def test_other_documents_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        read_program(written(**changes))


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_other_json_is_refused(text):
    with pytest.raises(InvalidInput):
        read_program(text)
