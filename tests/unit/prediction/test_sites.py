"""Plans for sites: one for each, with the bytes and seconds of what they exchange."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import read_cluster, write_cluster
from backend.errors import InvalidInput
from backend.pipeline.exchange.text import format_program, parse_program
from backend.planning.plan import PlanDoesNotFit
from backend.planning.sites import Sites
from backend.prediction import predict
from backend.prediction.across_sites import across
from backend.prediction.answer import cut_by_hand, rank
from backend.prediction.predict import check_plan, predicted_program
from backend.prediction.question import Question
from backend.prediction.same_updates import goes_on_from
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

MB = 10**6
LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3, 2e-3, MB, MB) for n in range(4))
PROFILE = Profile("chain", ModelGraph.chain(LAYERS), 8)
WEIGHTS = 4 * MB
INSIDE, BETWEEN = Level(2, 1e10), Level(3, 1e7, 0.01, sites=True)
CLUSTER = Cluster((INSIDE, BETWEEN), Device("cpu", 1e9))


def asked(sites: str, **more) -> Question:
    return Question(
        PROFILE, CLUSTER, **{"planner": "straight", "schedule": "1f1b-flush"} | more, sites=sites
    )


def test_each_site_runs_the_plan_of_one() -> None:
    (found,) = rank(asked("diloco:every=50"))
    (alone,) = rank(replace(asked(""), cluster=Cluster((INSIDE,), Device("cpu", 1e9))))
    plan = found.prediction.plan
    assert plan.partition == alone.prediction.plan.partition
    assert (plan.num_pipelines, plan.devices) == (3, (0, 1, 2, 3, 4, 5))
    assert plan.sites == Sites("diloco", every=50, devices=2)
    rate = found.prediction.samples_per_second
    assert 2.4 < rate / alone.prediction.samples_per_second <= 3
    extra = sum(found.prediction.memory_bytes) - sum(alone.prediction.memory_bytes)
    assert extra == 2 * WEIGHTS  # the reference and the outer momentum


@pytest.mark.parametrize("every", [1, 10])
def test_the_bytes_between_sites_are_those_of_a_sum_every_so_many_updates(every: int) -> None:
    (found,) = rank(asked(f"diloco:every={every}"))
    (alone,) = rank(replace(asked(""), cluster=Cluster((INSIDE,), Device("cpu", 1e9))))
    more = found.prediction.sent_bytes - alone.prediction.sent_bytes
    assert more == pytest.approx(3 * 2 * (2 / 3) * WEIGHTS / every / 3)  # a third of the updates
    assert any(f"every={every}" in reason for reason in found.reasons)


def test_what_a_filter_sends_is_bounded_from_above() -> None:
    (found,) = rank(asked("gaia:threshold=0.05"))
    (alone,) = rank(replace(asked(""), cluster=Cluster((INSIDE,), Device("cpu", 1e9))))
    more = found.prediction.sent_bytes - alone.prediction.sent_bytes
    assert more == pytest.approx(3 * 2 * WEIGHTS / 3)  # to two others, in a third of the updates
    assert any("at most" in reason for reason in found.reasons if "sites" in reason)


def test_rare_exchanges_cost_less_time_over_slow_links() -> None:
    often, rarely = (rank(asked(f"diloco:every={n}"))[0].prediction for n in (1, 100))
    assert often.samples_per_second < rarely.samples_per_second


@pytest.mark.parametrize("schedule", ["1f1b-flush", "pipedream"])
@pytest.mark.parametrize("rule", ["diloco:every=4", "gaia", "elastic"])
def test_what_is_not_simulated_sends_as_much(rule: str, schedule: str, monkeypatch) -> None:
    """Replicas exchange each, in every site; the exchange holds the rate of an estimate back."""
    cluster = Cluster((Level(3, 1e10), BETWEEN), Device("cpu", 1e9))
    question = replace(asked(rule, planner="", schedule=schedule, batch=4), cluster=cluster)
    simulated = cut_by_hand(question, "2x2-4x1").prediction
    monkeypatch.setattr(predict, "MOST_FORWARDS", 0)
    told = replace(question).predict(simulated.plan)
    assert not told.is_simulated
    assert told.sent_bytes == pytest.approx(simulated.sent_bytes)
    assert 0.8 <= told.samples_per_second / simulated.samples_per_second <= 2


def test_how_far_sites_run_apart_is_said() -> None:
    for rule, words in (("diloco:every=50", "50 updates"), ("gaia", "1 update"), ("elastic", "1 ")):
        (found,) = rank(asked(rule))
        (said,) = (reason for reason in found.reasons if "sites exchange" in reason)
        assert f"ahead of another by {words}" in said


def test_a_cut_by_hand_is_that_of_each_site() -> None:
    question = asked("elastic", planner="")
    plan = cut_by_hand(question, "1x1-4x1").prediction.plan
    assert [stage.devices for stage in plan.partition.stages] == [(0,), (1,)]
    assert plan.num_pipelines == 3
    program, timeline = predicted_program(PROFILE, CLUSTER, plan, 24)
    assert len(program.ranks) == 6
    assert timeline.makespan > 0
    assert parse_program(format_program(program)).shape == program.shape


def test_sites_go_with_schedules_that_never_drain() -> None:
    for name in ("pipedream", "2bw"):
        (found,) = rank(asked("diloco", schedule=name, planner="straight"))
        assert found.prediction.plan.schedule == name


def test_what_cannot_be_planned_is_said() -> None:
    with pytest.raises(InvalidInput, match="has no sites"):
        rank(replace(asked("diloco"), cluster=Cluster((INSIDE, replace(BETWEEN, sites=False)))))
    unlike = tuple(Device(speed=1.0 + n) for n in range(6))
    with pytest.raises(InvalidInput, match="other speeds"):
        rank(replace(asked("diloco"), cluster=replace(CLUSTER, devices=unlike)))
    with pytest.raises(InvalidInput, match="outermost"):
        Cluster((replace(INSIDE, sites=True), BETWEEN))
    with pytest.raises(InvalidInput, match="3 pipelines could exchange"):
        rank(asked("diloco", schedule="pipedream-naive"))
    with pytest.raises(InvalidInput, match="no rule between sites"):
        asked("gossip")
    (found,) = rank(asked("diloco"))
    plan = found.prediction.plan
    with pytest.raises(InvalidInput, match="overlap"):
        check_plan(PROFILE, CLUSTER, replace(plan, sites=Sites(devices=1)))
    with pytest.raises(PlanDoesNotFit, match="a rule of their own"):
        across(asked("diloco"), found.prediction)


def test_a_training_goes_on_by_a_plan_with_the_same_rule_alone() -> None:
    plan = rank(asked("diloco"))[0].prediction.plan
    assert goes_on_from(plan, replace(plan, sites=replace(plan.sites, devices=4)))
    assert not goes_on_from(plan, replace(plan, sites=Sites("elastic", devices=2)))


def test_sites_are_read_as_they_are_written() -> None:
    assert read_cluster(write_cluster(CLUSTER)) == CLUSTER
    with pytest.raises(InvalidInput, match="not true or false"):
        read_cluster("levels: [{count: 2, bandwidth: 1}, {count: 2, bandwidth: 1, sites: 3}]")


@pytest.mark.parametrize(("inside", "said"), [(1, "One device"), (2, "Each of 2 devices")])
def test_a_whole_model_on_each_site_is_said_of_each(inside: int, said: str) -> None:
    cluster = Cluster((Level(inside, 1e10), BETWEEN), Device("cpu", 1e9))
    asking = asked("diloco:every=50", planner="data-parallel")
    (found,) = rank(replace(asking, cluster=cluster))
    assert found.reason.startswith(f"{said} of each site")
    assert ("nothing sent inside a site." in found.reason) == (inside == 1)
