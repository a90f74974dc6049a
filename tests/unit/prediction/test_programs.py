"""Programs as files, and files as programs: every form, faults, the simulation."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.exchange.forms import FORMS, form_named, read_any
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.balanced import copied, even_stops, interleaved, side_by_side
from backend.planning.plan import Partition, Plan
from backend.prediction.predict import predicted_program
from backend.prediction.programs import IMPORTED, check_size, examined, exported
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

PROFILE = Profile(
    "p", ModelGraph.chain(tuple(Layer(f"l{n}", "Linear", 1.0 + n, 2.0, 8, 8) for n in range(6))), 2
)
CLUSTER = Cluster((Level(4, 100.0),))
STRAIGHT = side_by_side(even_stops(PROFILE, 3))


def a_plan(partition: Partition, name: str = "1f1b-flush", batch: int = 4) -> Plan:
    return Plan("by-hand", partition, name, PROFILE.microbatch, batch)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "plan",
    [
        a_plan(STRAIGHT),
        a_plan(STRAIGHT, "pipedream", 1),
        a_plan(copied(even_stops(PROFILE, 2), 2)),
        a_plan(interleaved(PROFILE, 2, 1, 2), "interleaved"),
        a_plan(STRAIGHT, "zb-h1"),
    ],
    ids=lambda plan: plan.label,
)
def test_a_plan_is_written_read_verified_and_simulated_as_it_was_predicted(form, plan):
    data = exported(PROFILE, CLUSTER, plan, FORMS[form], 8)
    program, timeline = predicted_program(PROFILE, CLUSTER, plan, 8)
    found = examined(read_any(data), PROFILE, CLUSTER)
    assert (found.program, found.faults) == (program, ())
    if plan.partition.replicas == (2, 2):  # other devices than the copies' own
        assert found.timeline.makespan == pytest.approx(timeline.makespan, rel=0.1)
    else:
        assert found.timeline == timeline
        assert found.prediction.plan == replace(plan, planner=IMPORTED)
    assert found.prediction.samples_per_second == pytest.approx(16 / found.timeline.makespan)


@pytest.mark.parametrize("form", ["csv", "trace"])
def test_the_order_alone_comes_back_as_one_batch(form):
    plan = a_plan(STRAIGHT, "zb-h1")
    found = examined(read_any(exported(PROFILE, CLUSTER, plan, FORMS[form], 4)), PROFILE, CLUSTER)
    program, timeline = predicted_program(PROFILE, CLUSTER, plan, 4)
    assert found.faults == ()
    assert found.program.schedule == "custom"
    assert found.program.ranks == program.ranks
    assert found.timeline == timeline


def test_a_form_of_one_batch_is_given_one_and_says_what_it_cannot_say():
    data = exported(PROFILE, CLUSTER, a_plan(STRAIGHT), FORMS["csv"])
    assert read_any(data).shape.num_microbatches == 4
    with pytest.raises(InvalidInput, match="one batch with a flush"):
        exported(PROFILE, CLUSTER, a_plan(STRAIGHT, "pipedream", 1), FORMS["csv"])
    with pytest.raises(InvalidInput, match="no form 'doc'"):
        form_named("doc")


def test_faults_are_said_and_nothing_is_simulated():
    program = lower(schedule("gpipe"), Shape((1, 1), 2, 2))
    first, *others = program.ranks[0]
    swapped = Program.of("gpipe", program.shape, ((*others, first), program.ranks[1]))
    found = examined(swapped, PROFILE, CLUSTER)
    assert found.faults
    assert "rank 0" in str(found.faults[0])
    assert (found.timeline, found.prediction) == (None, None)


def test_a_program_needs_as_many_layers_and_devices():
    for shape in (Shape((1,) * 5, 4, 4), Shape((1, 1), 4, 4, chunks=4)):
        name = "interleaved" if shape.chunks > 1 else "gpipe"
        with pytest.raises(InvalidInput, match="profile 6 layers, the cluster 4 devices"):
            examined(lower(schedule(name), shape), PROFILE, CLUSTER)


def test_where_others_wait_the_size_is_limited(monkeypatch):
    program = lower(schedule("gpipe"), Shape((1, 1), 2, 2))
    assert check_size(program) is program
    monkeypatch.setattr("backend.prediction.programs.MOST_ACTIONS", 5)
    with pytest.raises(InvalidInput, match="actions"):
        check_size(program)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"{}", b'{"traceEvents": 3}', b"schedule x", b"hello", b"0F0,x"]
)
def test_other_files_are_refused(data):
    with pytest.raises(InvalidInput):
        read_any(data)
