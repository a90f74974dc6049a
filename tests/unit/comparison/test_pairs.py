"""Pairs of a plan and a schedule in a link, their sizes and their staleness."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.queries.outcomes import staleness
from backend.cluster.presets import local
from backend.comparison.pairs import MOST, Pair, default_pairs, read_pairs, write_pairs
from backend.pipeline.schedules.catalog import SCHEDULES, training_schedules
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predicted_program
from backend.prediction.sizes import PlanSizes
from tests.app import seed

NAMES = [member.name for member in training_schedules()]
TWO = Partition((Stage(0, 6, (0, 1)), Stage(6, len(seed.a_profile().layers), (2,))))


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 99)), max_size=MOST, unique=True))
def test_what_is_written_is_read_back(drawn: list[tuple[str, int]]) -> None:
    pairs = [Pair("straight", name, b if SCHEDULES[name].batched else 1) for name, b in drawn]
    assert read_pairs(write_pairs(pairs)) == tuple(dict.fromkeys(pairs))


@given(st.text(max_size=40))
def test_no_link_breaks_the_page(text: str) -> None:
    for pair in read_pairs(text):
        assert pair.schedule in (*NAMES, "")


def test_what_makes_no_sense_is_left_out() -> None:
    assert read_pairs("a:pipedream:1,b:nonsense:1,c:gpipe:x,,:gpipe:2,a:pipedream:1") == (
        Pair("a", "pipedream"),
    )
    assert read_pairs("a:gpipe:0")[0].batch == 1
    assert Pair("plan-7", "gpipe").plan_id == 7
    assert Pair("plan-x", "gpipe").plan_id is None


def test_the_first_pairs_have_whole_rounds_as_batches() -> None:
    cut = Partition((Stage(0, 2, tuple(range(15))), Stage(2, 4, (15,))))
    assert {pair.batch for pair in default_pairs("pipedream", cut)} == {1, 4, 30}
    assert {pair.batch for pair in default_pairs("straight", TWO)} == {1, 4}


def test_the_first_pairs_are_of_a_pipeline_beside_data_parallelism() -> None:
    best, *sources, base = [pair.source for pair in default_pairs("straight", TWO)]
    assert set(sources) == {"straight"}
    assert (best, base) == ("best", "data-parallel")


def test_staleness_is_told_per_stage() -> None:
    plan = Plan("x", TWO, "pipedream", seed.SAMPLES)
    program, _ = predicted_program(seed.a_profile(), local(3), plan, 24)
    assert staleness(program) == (1, 0)
    flush = Plan("x", TWO, "gpipe", seed.SAMPLES, 4)
    program, _ = predicted_program(seed.a_profile(), local(3), flush, 24)
    assert staleness(program) == (0, 0)


def test_a_rank_holds_its_stages_layers() -> None:
    profile = seed.a_profile()
    sizes = PlanSizes(profile, TWO, "adam")
    assert sizes.weights(0) + sizes.weights(1) == profile.parameter_bytes
    assert sizes.optimizer(1) == 2 * sizes.weights(1)
    assert sizes.boundary(0) == 0
    assert sizes.boundary(1) == profile.graph.cut_bytes[5]
    assert sizes.activations(1) == sum(layer.output_bytes for layer in profile.layers[6:])


def test_activations_are_as_measured_where_they_were() -> None:
    profile = seed.a_profile()
    layers = tuple(replace(layer, saved_bytes=7) for layer in profile.layers)
    measured = replace(profile, graph=replace(profile.graph, layers=layers))
    assert PlanSizes(measured, TWO, "adam").activations(0) == 7 * 6
