"""Plans that keep an order: brought from a file or found, sound, and refused in sentences."""

import random
from dataclasses import replace
from functools import cache

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.text import format_program
from backend.pipeline.exchange.torch_csv import write_csv
from backend.pipeline.kept_order import kept
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, plannable_schedules, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.verify import ProgramUnsound, verify
from backend.planning.balanced import side_by_side
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.prediction.answer import by_hand, by_order, cut_by_hand, rank
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

CLUSTER = Cluster((Level(4, 100.0),))
FLUSHING = {
    "gpipe": Shape((1,) * 4, 8, 8),
    "1f1b-flush": Shape((1,) * 4, 8, 8),
    "afp": Shape((1,) * 3, 8, 8, advance=2),
    "zb-h1": Shape((1,) * 4, 8, 8),
    "zb-h2": Shape((1,) * 4, 8, 8),
    "interleaved": Shape((1,) * 4, 8, 8, chunks=3),
    "interleaved-zb": Shape((1,) * 4, 8, 8, chunks=3),
    "zb-v": Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V),
    "v-half": Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V),
    "v-min": Shape((1,) * 3, 8, 8, chunks=2, placement=Placement.V),
    "dualpipe-v": Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V),
}
"""Every schedule that drains, in a shape that it admits."""


def a_profile(seed: int, layers: int = 8) -> Profile:
    dealt = random.Random(seed)
    made = (
        Layer(f"l{n}", "Linear", dealt.uniform(1, 9), dealt.uniform(2, 18), dealt.randint(8, 80), 8)
        for n in range(layers)
    )
    return Profile("p", ModelGraph.chain(tuple(made)), 2)


def a_question(seed: int = 1, schedule: str = "synthesised", batch: int = 6) -> Question:
    return Question(a_profile(seed), CLUSTER, "", schedule, batch)


@cache
def straight_answer(seed: int, schedule: str) -> Prediction:
    """Several tests ask for the same, which takes seconds to find."""
    return rank(replace(a_question(seed, schedule), planner="straight"))[0].prediction


def csv_of(name: str) -> bytes:
    return write_csv(lower(schedule(name), FLUSHING[name])).encode()


def test_every_schedule_that_drains_is_tried() -> None:
    drains = {rule.name for rule in SCHEDULES.values() if rule.flushes and rule.trains}
    assert drains == set(FLUSHING)


@pytest.mark.parametrize("name", FLUSHING)
def test_a_kept_order_repeats_as_the_schedule_that_it_was_taken_from(name: str) -> None:
    """The same program of one batch and of three, bounds of memory included."""
    one = FLUSHING[name]
    for shape in (one, replace(one, num_microbatches=3 * one.batch)):
        order = kept(lower(schedule(name), one).ranks)
        own = lower(schedule("custom"), replace(shape, kept_order=order))
        rule = lower(schedule(name), shape)
        assert own.rows == rule.rows
        assert verify(own) == ()
        for mine, other in zip(own.shape.coordinates, shape.coordinates, strict=True):
            assert schedule("custom").in_flight(mine) == schedule(name).in_flight(other)
            # a rule may promise more gradients that wait than ever do
            assert schedule("custom").deferred(mine) <= schedule(name).deferred(other)


@pytest.mark.parametrize("name", FLUSHING)
def test_a_brought_order_is_predicted_as_the_plan_under_its_schedule(name: str) -> None:
    question = Question(a_profile(2, 12), CLUSTER, "", "", 8)
    plan = by_order(question, csv_of(name)).prediction.plan
    assert (plan.schedule, plan.batch, plan.planner) == ("custom", 8, "imported")
    advance = FLUSHING[name].advance
    other = replace(plan, schedule=name, kept_order=(), advance=advance)
    found, rule = question.predict(plan), question.predict(other)
    assert found.seconds_per_minibatch == pytest.approx(rule.seconds_per_minibatch, rel=1e-9)
    assert all(map(float.__le__, found.memory_bytes, rule.memory_bytes))


def test_an_order_of_the_catalog_keeps_its_name() -> None:
    program = lower(schedule("zb-v"), FLUSHING["zb-v"])
    answer = by_order(a_question(), format_program(program).encode())
    assert (answer.prediction.plan.schedule, answer.prediction.plan.kept_order) == ("zb-v", ())
    text = format_program(program).replace("schedule zb-v", "schedule gpipe")
    with pytest.raises(InvalidInput, match="'gpipe' runs one stage per pipeline rank"):
        by_order(a_question(), text.encode())


def test_a_brought_order_runs_on_stages_by_hand() -> None:
    plan = by_order(a_question(), csv_of("zb-h2"), "1x1-3x1-6x1-8x1").prediction.plan
    assert [stage.stop for stage in plan.partition.stages] == [1, 3, 6, 8]
    with pytest.raises(InvalidInput, match="the kept order has 4 ranks, the plan 2"):
        by_order(a_question(), csv_of("zb-h2"), "3x1-8x1")
    with pytest.raises(InvalidInput, match="without replicas"):
        by_order(a_question(), csv_of("afp"), "3x1-6x2-8x1")


def test_a_plan_with_an_order_is_stored_and_read_as_it_is() -> None:
    plan = by_order(a_question(), csv_of("zb-h1")).prediction.plan
    assert from_json(Plan, to_json(Plan, plan)) == plan
    old = to_json(Plan, replace(plan, kept_order=())).replace(b',"kept_order":[]', b"")
    assert b"kept_order" not in old
    assert from_json(Plan, old).kept_order == ()


@pytest.mark.parametrize("seed", range(4))
def test_the_plan_that_is_found_is_no_slower_than_those_at_its_memory(seed: int) -> None:
    """In the steady state, as pages show it."""
    found = straight_answer(seed, "synthesised")
    plan = found.plan
    assert (plan.schedule, plan.planner) == ("synthesised", "straight")
    assert verify(lower(schedule(plan.schedule), plan.shape(3 * plan.batch))) == ()
    for name in ("1f1b-flush", "zb-h1"):
        other = straight_answer(seed, name)
        assert found.seconds_per_minibatch <= other.seconds_per_minibatch
    held = [schedule("synthesised").in_flight(at) for at in plan.shape(6).coordinates]
    most = other.plan.shape(6).coordinates
    bounds = [plan.partition.chunks * schedule("zb-h1").in_flight(at) for at in most]
    assert all(map(int.__le__, held, bounds))


def test_a_v_is_found_where_its_order_waits_less() -> None:
    layers = tuple(Layer(f"l{n}", "Linear", 2.0, 4.0, 1, 1) for n in range(8))
    question = replace(a_question(), profile=Profile("alike", ModelGraph.chain(layers), 2))
    plan = rank(replace(question, planner="straight"))[0].prediction.plan
    assert (plan.partition.chunks, plan.partition.placement) == (2, Placement.V)
    assert plan.under("synthesised", 6) == plan
    straight = by_hand(question, question.plan("by-hand", side_by_side([2, 4, 6, 8])))
    assert straight.prediction.plan.partition.chunks == 1
    assert question.predict(plan).samples_per_second > straight.prediction.samples_per_second


def test_it_gains_where_stages_differ() -> None:
    found, other = (straight_answer(1, name) for name in ("synthesised", "zb-h1"))
    assert found.samples_per_second > other.samples_per_second


def test_every_hand_finds_the_same_order() -> None:
    question = replace(a_question(batch=4), planner="straight")
    straight = rank(replace(question, schedule="zb-h1"))[0].prediction.plan
    cut = "-".join(f"{stage.stop}x1" for stage in straight.partition.stages)
    hand = cut_by_hand(replace(question, planner=""), cut).prediction.plan
    asked = by_hand(question, replace(hand, kept_order=())).prediction.plan
    assert hand.kept_order == asked.kept_order
    planned = rank(question)[0].prediction
    assert planned.seconds_per_minibatch <= question.predict(hand).seconds_per_minibatch
    again = by_hand(question, replace(planned.plan, kept_order=())).prediction
    assert again.plan.kept_order == planned.plan.kept_order


def test_best_answers_with_a_straight_pipeline() -> None:
    plan = rank(replace(a_question(), planner="best"))[0].prediction.plan
    assert (plan.planner, set(plan.partition.replicas)) == ("best", {1})
    assert plan.kept_order


def test_what_has_no_room_is_refused() -> None:
    small = replace(CLUSTER, device=Device("small", 10.0))
    with pytest.raises(PlanDoesNotFit):
        rank(replace(a_question(), planner="straight", cluster=small))


def test_another_schedule_or_batch_forgets_the_order() -> None:
    plan = by_order(a_question(), csv_of("zb-h1")).prediction.plan
    assert plan.under("custom", 8).kept_order == plan.kept_order
    assert plan.under("custom", 4).kept_order == plan.under("gpipe", 8).kept_order == ()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kept_order": ()}, "no order is kept with this plan"),
        ({"batch": 4}, "the plan has 4 stages and 4 microbatches per update"),
        ({"batch": 9}, "instead of 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        ({"recompute": True}, "with recomputation"),
        ({"num_pipelines": 2}, "cannot be shared evenly by 2 pipelines"),
        ({"schedule": "gpipe"}, "'gpipe' is a rule, and the plan keeps an order"),
        ({"kept_order": ("0F0 0X0", "", "", "")}, "'0X0' is not a computation"),
        ({"kept_order": ("0F0 0B0",) * 4}, "the program is unsound"),
        ({"kept_order": ("0F0 " * 60_000,) * 4}, "more than 50,000 computations"),
    ],
    ids=str,
)
def test_a_plan_whose_order_cannot_run_is_refused(changed, message: str) -> None:
    question = a_question()
    plan = replace(by_order(question, csv_of("zb-h1")).prediction.plan, **changed)
    with pytest.raises((InvalidInput, ProgramUnsound), match=message):
        predict(question.profile, CLUSTER, plan)


def test_an_order_that_waits_for_ever_is_refused() -> None:
    text = csv_of("zb-h1").decode().replace("3F0,3I0", "3I0,3F0")
    with pytest.raises(ProgramUnsound):
        by_order(a_question(), text.encode())


@pytest.mark.parametrize(
    ("name", "microbatches"), [("pipedream", 4), ("1f1b-flush", 8), ("2bw", 8)]
)
def test_what_is_no_batch_with_a_flush_is_refused(name: str, microbatches: int) -> None:
    shape = Shape((1, 1), microbatches, 4 if schedule(name).batched else 1)
    text = format_program(lower(schedule(name), shape))
    assert by_order(a_question(), text.encode()).prediction.plan.schedule == name
    custom = text.replace(f"schedule {name}", "schedule custom")
    with pytest.raises((InvalidInput, ProgramUnsound)):
        by_order(a_question(), custom.encode())


def test_the_names_that_can_be_asked_for() -> None:
    names = [rule.name for rule in plannable_schedules()]
    assert names.count("synthesised") == 1
    assert "custom" not in names
    with pytest.raises(InvalidInput) as caught:
        schedule("none")
    assert "synthesised" in caught.value.advice
