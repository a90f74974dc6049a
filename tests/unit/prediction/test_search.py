"""The search over partitions, schedules, microbatches, recomputation and pipelines."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import cluster_a, local
from backend.errors import InvalidInput
from backend.planning.catalog import PLANNERS, SEARCHES
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.planning.savings import MemorySaving
from backend.planning.work import SearchWork
from backend.prediction import limits
from backend.prediction.answer import compare, rank, replies
from backend.prediction.best_first import fastest
from backend.prediction.candidates import every_plan, own_plans
from backend.prediction.improvement import nearby
from backend.prediction.question import Question
from backend.prediction.same_updates import samples_per_update
from backend.prediction.search import search
from backend.prediction.simulations import Simulations
from backend.prediction.watch import UNWATCHED
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

MIB = 2**20


def uneven(count: int = 8) -> Profile:
    layers = tuple(
        Layer(f"l{n}", "Linear", 1e-3 * (1 + n % 3), 2e-3, (8 - n) * MIB, n * n * MIB // 4)
        for n in range(count)
    )
    return Profile("uneven", ModelGraph.chain(layers), microbatch=8)


def alike(count: int, microbatch: int) -> Profile:
    layers = (Layer(f"l{n}", "Linear", 1e-3, 2e-3, 64 * MIB, MIB) for n in range(count))
    return Profile("p", ModelGraph.chain(tuple(layers)), microbatch)


QUESTION = Question(uneven(), local(4))


def answer(name, **changes):
    [found] = rank(replace(QUESTION, planner=name, **changes))
    return found


@pytest.fixture(
    scope="module", params=[local(4), cluster_a(1), Cluster((Level(2, 1e10), Level(2, 1e8)))]
)
def best(request: pytest.FixtureRequest) -> tuple[Question, float]:
    """A question, and the samples/s of the best plan."""
    question = replace(QUESTION, cluster=request.param)
    return question, search("best", question).samples_per_second


@pytest.mark.parametrize("name", [*PLANNERS, "avgpipe"])
def test_best_is_as_fast_as_any_planner(name, best):
    question, rate = best
    assert rate >= search(name, replace(question)).samples_per_second * (1 - 1e-9)


def test_every_minibatch_of_a_batched_schedule_has_the_samples_asked_for():
    for schedule in ("1f1b-flush", "gpipe", "zb-h1", "interleaved"):
        plan = search("best", replace(QUESTION, schedule=schedule)).plan
        assert plan.microbatch * plan.batch == 8 * 4
        assert plan.schedule == schedule


def test_recomputation_is_tried_where_nothing_fits_without():
    profile = alike(8, 1)
    cluster = Cluster((Level(2, 1e10),), Device(memory=700 * MIB))
    question = Question(profile, cluster, schedule="gpipe")
    for name in ("best", "gpipe-balanced"):
        assert search(name, question).plan.recompute
    with pytest.raises(PlanDoesNotFit):
        search("gpipe-balanced", replace(question, recompute=MemorySaving.NEVER))


@pytest.mark.parametrize("name", ["best", "data-parallel"])
def test_state_is_shared_where_that_is_faster_than_anything_else_that_fits(name):
    """Eight times 64 MiB of weights on four devices. Weights, gradients and two moments are
    2 GiB; with a quarter of the moments 1.25. Activations are few, so that computing them again
    frees little."""
    layers = (Layer(f"l{n}", "Linear", 1e-3, 2e-3, 1024, 64 * MIB) for n in range(8))
    profile = Profile("heavy", ModelGraph.chain(tuple(layers)), 8)
    cluster = Cluster((Level(4, 1e12),), Device(memory=1400 * MIB))
    question = Question(profile, cluster, schedule="1f1b-flush", optimizer="adam", batch=8)
    found = search(name, question)
    assert found.plan.shard_state
    assert not found.plan.recompute
    assert found.plan.partition.label == "4"
    assert max(found.memory_bytes) <= 1400 * MIB
    never = replace(question, shard_state=MemorySaving.NEVER)
    if name == "data-parallel":
        with pytest.raises(PlanDoesNotFit):
            search(name, never)
    else:
        other = search(name, never)
        assert not other.plan.shard_state
        assert other.samples_per_second < found.samples_per_second
    always = search(name, replace(question, shard_state=MemorySaving.ALWAYS))
    assert always.plan.shard_state


def test_pipedream_keeps_within_the_memory():
    roomy = search("pipedream", QUESTION)
    most = max(roomy.memory_bytes)
    tight = Cluster(local(4).levels, Device(memory=most * 0.8))
    found = search("pipedream", replace(QUESTION, cluster=tight))
    assert max(found.memory_bytes) <= most * 0.8
    assert found.plan.partition != roomy.plan.partition


def test_2bw_takes_the_largest_microbatch_that_fits():
    profile = alike(4, 8)
    sizes = []
    for memory in (10_000 * MIB, 170 * MIB):
        cluster = Cluster((Level(2, 1e10),), Device(memory=memory))
        found = search("pipedream-2bw", Question(profile, cluster))
        assert found.plan.schedule == "2bw"
        assert max(found.memory_bytes) <= memory
        sizes.append(found.plan.microbatch)
    assert sizes[0] == 8 > sizes[1]


def test_avgpipe_fills_the_waiting_of_one_pipeline():
    question = Question(uneven(), local(4), batch=2)
    found = search("avgpipe", question)
    assert found.plan.schedule == "afp"
    assert found.plan.num_pipelines > 1


def test_an_unknown_planner_names_all():
    with pytest.raises(InvalidInput, match="'magic'") as refusal:
        replace(QUESTION, planner="magic")
    assert all(name in refusal.value.advice for name in (*PLANNERS, *SEARCHES))


def test_an_answer_stands_beside_its_bounds():
    found = answer("best")
    prediction = found.prediction
    assert 0 <= found.gap < 1
    assert found.bound_seconds <= prediction.seconds_per_minibatch
    assert found.over_one_device <= 4 * (1 + 1e-9)
    assert found.over_data_parallel >= 1 - 1e-9
    assert found.planner_seconds > 0


def test_data_parallelism_is_once_as_fast_as_itself_and_sends_what_it_sends():
    found = answer("data-parallel")
    assert found.over_data_parallel == pytest.approx(1.0)
    assert found.data_parallel_bytes == pytest.approx(found.prediction.sent_bytes)


def test_the_reasons_name_the_stage_and_what_moving_a_layer_costs():
    lines = answer("model-parallel", run_ahead=0).reasons
    assert "bottleneck" in lines[0]
    assert lines[1].startswith("Waiting adds")
    assert "holds most" in lines[2]
    assert len(lines) > 3
    assert all("Moving layer l" in line and "MiB" in line for line in lines[3:])
    assert not any("too much" in line for line in lines)


def test_a_move_that_sends_no_other_bytes_says_so():
    layers = tuple(replace(layer, output_bytes=4096) for layer in QUESTION.profile.layers)
    profile = replace(QUESTION.profile, graph=ModelGraph.chain(layers))
    lines = answer("model-parallel", profile=profile).reasons
    assert len(lines) > 2
    assert all("would send as much each way per microbatch and" in line for line in lines[2:])


def test_a_move_that_does_not_fit_says_so():
    needs = answer("model-parallel").prediction.memory_bytes
    full = Device("full", memory=max(needs))
    cluster = replace(QUESTION.cluster, device=full)
    lines = answer("model-parallel", cluster=cluster).reasons
    assert any("but stage" in line and "too much" in line for line in lines[1:])


def test_the_table_has_every_planner_and_schedule_or_says_why_not():
    rows = list(compare(replace(QUESTION, planner="", profile=uneven(4), cluster=local(2))))
    assert {row.planner for row in rows} == {*PLANNERS, *SEARCHES}
    assert {"pipedream", "gpipe", "2bw", "zb-h1"} <= {row.schedule for row in rows}
    assert all(row.answer or row.fault for row in rows)


def test_interleaving_is_in_the_table_for_planners_of_equal_stages():
    rows = list(compare(replace(QUESTION, planner="", profile=uneven(8), schedule="interleaved")))
    found = {row.planner: row.answer for row in rows}
    for name in ("gpipe-balanced", "pipedream-2bw", "best"):
        assert found[name] is not None
        assert found[name].prediction.plan.partition.chunks == 2
    refused = next(row for row in rows if row.planner == "straight")
    assert "gives a device one stage" in str(refused.fault)


def test_the_bottleneck_is_named_with_its_share():
    assert "% of compute" in answer("model-parallel").reasons[0]


def test_replicas_on_neighbouring_devices_are_a_candidate():
    """Four equal stages on 8 x 2 devices: each one's ring stays within a machine."""
    question = Question(alike(48, 8), Cluster((Level(8, 1e10), Level(2, 1e8))))
    layout = tuple(tuple(range(n, n + 4)) for n in (0, 4, 8, 12))
    found = {tuple(s.devices for s in plan.partition.stages) for plan in every_plan(question)}
    assert layout in found


def test_small_steps_improve_on_the_best_candidate():
    plan = Plan("best", Partition((Stage(0, 3, (0, 1)), Stage(3, 8, (2,)))), "pipedream", 8)
    near = {each.partition.stages for each in nearby(plan, uneven(), local(4))}
    assert near >= {
        (Stage(0, 2, (0, 1)), Stage(2, 8, (2,))),
        (Stage(0, 4, (0, 1)), Stage(4, 8, (2,))),
        (Stage(0, 3, (1,)), Stage(3, 8, (2,))),
        (Stage(0, 3, (1,)), Stage(3, 8, (0, 2))),
        (Stage(0, 3, (0, 1, 3)), Stage(3, 8, (2,))),
        (Stage(0, 3, (0, 1)), Stage(3, 8, (2, 3))),
        (Stage(0, 3, (2,)), Stage(3, 8, (0, 1))),
        (Stage(0, 8, (0, 1, 2)),),
        (Stage(0, 3, (0, 1)), Stage(3, 5, (2,)), Stage(5, 8, (3,))),
    }
    best = search("best", QUESTION)
    for step in nearby(best.plan, QUESTION.profile, QUESTION.cluster):
        try:
            assert QUESTION.predict(step).samples_per_second <= best.samples_per_second * (1 + 1e-3)
        except PlanDoesNotFit:
            continue


def test_replicas_also_stand_in_the_machines_in_turn():
    """Then every second microbatch stays in its machine: 0 to 2, 3 to 5, 1 to 2, 4 to 5."""
    cluster = Cluster((Level(3, 1e10), Level(2, 1e8)))
    plan = Plan("best", Partition((Stage(0, 3, (0, 1, 3, 4)), Stage(3, 8, (2, 5)))), "pipedream", 8)
    near = [each.partition.stages for each in nearby(plan, uneven(), cluster)]
    assert (Stage(0, 3, (0, 3, 1, 4)), Stage(3, 8, (2, 5))) in near
    assert (Stage(0, 3, (3, 4)), Stage(3, 8, (5,))) in near
    assert len(near) == len(set(near))


def test_a_layer_of_a_branch_moves_by_itself():
    layers = tuple(replace(layer, name=f"l{n}") for n, layer in enumerate(uneven(4).layers))
    profile = replace(uneven(4), graph=ModelGraph(layers, ((0, 1), (0, 2), (1, 3), (2, 3))))
    plan = Plan("best", Partition((Stage(0, 3, (0,)), Stage(3, 4, (1,)))), "pipedream", 8)
    orders = {each.partition.order for each in nearby(plan, profile, local(2))}
    assert (0, 2, 1, 3) in orders


def test_best_is_not_behind_other_planners_where_the_work_is_short(monkeypatch):
    monkeypatch.setattr(limits, "LIMITS", {})
    monkeypatch.setattr(limits, "OTHERS", 2e4)
    monkeypatch.setattr(limits, "SPARE", 0)
    rows = rank(replace(EIGHT, planner=""))
    fastest = max(row.prediction.samples_per_second for row in rows)
    replies_of = {row.planner: row.answer for row in replies(replace(EIGHT, planner=""))}
    best = replies_of["best"]
    assert best.is_short
    assert best.prediction.samples_per_second >= fastest * (1 - 1e-9)


def test_once_the_work_is_spent_only_what_others_answered_is_looked_at():
    """Each plan alone takes more than the work: the one with the highest bound is simulated, and
    the two that are known already."""
    question = replace(EIGHT, planner="")
    for name in ("even-split", "pipedream"):
        search(name, question)
    own = [replace(plan, planner="best") for plan in own_plans(question)]
    answers = [replace(each.plan, planner="best") for each in question.answered.values() if each]
    simulations = Simulations(question, SearchWork(1.0))
    fastest("best", simulations, [], UNWATCHED, (*own, *answers))
    found = {replace(plan, planner="best") for plan in simulations.found}
    assert len(own) > 3
    assert found >= set(answers)
    assert len(found - set(answers)) <= 1
    assert simulations.work.is_short


EIGHT = replace(QUESTION, profile=alike(48, 8), cluster=Cluster((Level(8, 1e10), Level(2, 1e9))))


def test_2bw_keeps_to_the_samples_that_an_update_may_have():
    """16 devices run 16 microbatches ahead: of 32 samples they are 2 each, of 4 times as many 8."""
    found = search("pipedream-2bw", EIGHT)
    assert (found.plan.batch, found.plan.microbatch) == (16, 2)
    larger = search("pipedream-2bw", replace(EIGHT, update_times=4))
    assert (larger.plan.batch, larger.plan.microbatch) == (16, 8)
    with pytest.raises(PlanDoesNotFit, match="16 devices, an update has 8 samples"):
        search("pipedream-2bw", replace(EIGHT, batch=1))


@pytest.mark.parametrize("schedule", ["", "1f1b-flush", "2bw", "gpipe"])
def test_larger_updates_are_for_all_schedules_alike(schedule):
    """And never slower; what they are is said of every plan."""
    asked = replace(QUESTION, schedule=schedule)
    for name in ("best", "straight", "data-parallel")[: 2 if schedule == "2bw" else 3]:
        [usual] = rank(replace(asked, planner=name))
        [larger] = rank(replace(asked, planner=name, update_times=4))
        one, other = (each.prediction for each in (usual, larger))
        assert other.samples_per_second >= one.samples_per_second * (1 - 1e-9)
        if schedule:
            assert usual.samples_per_update == 8 * 4
            assert larger.samples_per_update in (8 * 4, 8 * 16)
        assert larger.samples_per_update == samples_per_update(other.plan)


def test_best_is_never_behind_2bw_in_its_own_table():
    for asked in (EIGHT, replace(EIGHT, update_times=4)):
        rows = {row.prediction.plan.planner: row for row in rank(replace(asked, planner=""))}
        best = max(rows.values(), key=lambda row: row.prediction.samples_per_second)
        assert "pipedream-2bw" in rows
        found = search("best", asked).samples_per_second
        assert found >= best.prediction.samples_per_second * (1 - 1e-9)


def test_an_update_of_replicas_that_take_turns_is_a_microbatch_of_each():
    plan = Plan("x", Partition((Stage(0, 3, (0, 1, 2)), Stage(3, 8, (3,)))), "pipedream", 8)
    assert samples_per_update(plan) == 3 * 8
    assert samples_per_update(replace(plan, schedule="1f1b-flush", batch=6)) == 6 * 8
