"""Plans whose chunks lie as a V: found by name, priced without what stays on a rank."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.actions import Flow, Message
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.planning.balanced import interleaved
from backend.planning.plan import Plan
from backend.prediction.chosen_codecs import chosen_codecs
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.prediction.reasons import reasons
from backend.prediction.search import search
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

MIB = 2**20
LAYERS = tuple(Layer(f"l{n}", "Linear", 0.01, 0.02, MIB, MIB) for n in range(8))
PROFILE = Profile("eight", ModelGraph.chain(LAYERS), 2)
CLUSTER = Cluster((Level(4, 1e9, 1e-5),))
SEARCHED = [rule.name for rule in SCHEDULES.values() if rule.is_v]
EACH = pytest.mark.parametrize("name", SEARCHED)


def v_of(size: int, name: str = "zb-v", batch: int = 12) -> Plan:
    cut = interleaved(PROFILE, size, 1, 2)
    return Plan("by-hand", cut, "interleaved", 2, batch).under(name, batch)


@EACH
@pytest.mark.parametrize("planner", ["best", "pipedream-2bw", "gpipe-balanced"])
def test_a_planner_that_is_asked_for_a_v_answers_with_one(name: str, planner: str) -> None:
    found = search(planner, Question(PROFILE, CLUSTER, planner, name, batch=8)).plan
    assert (found.schedule, found.partition.placement) == (name, Placement.V)
    assert found.partition.stages[0].devices == found.partition.stages[-1].devices


@EACH
def test_other_numbers_of_chunks_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{name}' has 2 chunks on each device, not 3"):
        Question(PROFILE, CLUSTER, schedule=name, chunks=3)


def test_best_does_not_try_a_v_unasked() -> None:
    assert not set(SEARCHED) & set(Question(PROFILE, CLUSTER).schedules)


def test_a_plan_under_v_min_warns() -> None:
    question = Question(PROFILE, CLUSTER, schedule="v-min")
    said = {
        name: " ".join(reasons(question, predict(PROFILE, CLUSTER, v_of(2, name))))
        for name in ("v-min", "v-half")
    }
    assert "Under v-min each microbatch adds to the bubble" in said["v-min"]
    assert "adds to the bubble" not in said["v-half"]


def test_a_plan_moves_its_chunks_with_its_schedule() -> None:
    plan = v_of(2)
    assert plan.partition.placement is Placement.V
    assert plan.under("interleaved", 12).partition == interleaved(PROFILE, 2, 1, 2)


def test_nothing_is_paid_at_the_turn() -> None:
    """Stages 1 and 2 share a rank: of three cuts two have messages, in bytes and in the sum."""
    plan = replace(v_of(2), codecs=("int8",) * 3)
    messages = PlanDurations.of(PROFILE, CLUSTER, plan).cut_messages
    for flow, turn in ((Flow.ACTIVATION, 1), (Flow.GRADIENT, 2)):
        assert messages.bytes(Message(flow, turn, 0)) == 0
        assert messages.sending(1, flow) == messages.receiving(1, flow) == 0
    plain = PlanDurations.of(PROFILE, CLUSTER, v_of(2)).cut_messages
    assert plain.plain == {Flow.ACTIVATION: (MIB, 0, MIB, 0), Flow.GRADIENT: (MIB, 0, MIB, 0)}
    assert predict(PROFILE, CLUSTER, v_of(2)).sent_bytes == 12 * 2 * 2 * MIB
    assert chosen_codecs(Question(PROFILE, CLUSTER, codec="auto"), v_of(2)) == ("", "", "")


def test_a_v_at_equal_halves_waits_less_than_interleaving() -> None:
    fast = replace(CLUSTER, levels=(Level(4, 1e15),))
    found = {
        name: predict(PROFILE, fast, v_of(4).under(name, 12)).bubble
        for name in ("zb-v", "interleaved")
    }
    assert found["interleaved"] > 4 * found["zb-v"] > 0
