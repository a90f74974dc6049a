"""Every schedule on a grid of straight pipelines: verified, simulated, equal to the formulas.

The table is that of the papers: GPipe (2019), PipeDream (2019, 2021), AvgPipe (2023), Narayanan
et al. (SC 2021), Qi et al. (2024). Stages are equal, messages free, steps free.
"""

import pytest

from backend.errors import InvalidInput
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from backend.prediction.uniform import UniformDurations, cost_seconds
from tests.oracles import simulate as oracle
from tests.oracles.held import in_flight, live_versions
from tests.oracles.program import unpack

POSITIONS = (1, 2, 3, 4, 8)
BATCHES = (1, 2, 4, 8, 16)
TIMES = ((1.0, 1.0, 1.0), (1.0, 2.0, 0.0), (2.0, 1.0, 1.5))


def shapes(name):
    for p in POSITIONS:
        for m in BATCHES:
            for chunks in (1, 2, 3) if SCHEDULES[name].chunked else (1,):
                for advance in (0, 1, 3) if name == "afp" else (1,):
                    placement = SCHEDULES[name].placement_of(chunks)
                    try:
                        shape = Shape((1,) * p, m, m, chunks, advance, placement=placement)
                        SCHEDULES[name].check(shape)
                    except InvalidInput:
                        continue
                    yield shape


def warm_up(p, m, s, v, a):
    """Forwards before the first backward, of chunks where there are several; None where no formula
    says it."""
    chunked = 2 * (p - 1 - s) + (v - 1) * p + 1 if v > 1 else p - s
    return {
        "gpipe": m,
        "1f1b-flush": min(m, p - s),
        "afp": min(m, (p - s) + a * (p - 1 - s)),
        "interleaved": min(m * v, chunked),
        "zb-h1": min(m, p),
        "zb-h2": min(m, 2 * p - 1),
        "zb-v": min(2 * m, m + s + 1, 2 * p) if v > 1 else min(m, p),
        "interleaved-zb": min(m * v, v * p),
        "v-half": (p + 2 - p % 2 if m >= 2 * p else None) if v > 1 else min(m, p),
        "dualpipe-v": 2 * p + 1 if v > 1 else min(m, p),
        "v-min": None if v > 1 else min(m, p),
        "pipedream": min(m, p - s),
        "pipedream-vertical-sync": min(m, p - s),
        "pipedream-naive": min(m, p - s),
        "2bw": min(m, p - s),
        "local": 1,
        "forward-only": 0,
    }


def versions(p, m, s):
    return {"pipedream": min(m, p - s), "pipedream-vertical-sync": min(m, p)}


@pytest.mark.parametrize("name", SCHEDULES)
def test_programs_hold_what_the_table_says(name):
    checked = 0
    for shape in shapes(name):
        program = lower(schedule(name), shape)
        assert verify(program) == ()
        p, m = shape.pipeline_size, shape.num_microbatches
        for coordinates in shape.coordinates:
            s, own = coordinates.pipeline_rank, program.ranks[coordinates.rank]
            held = warm_up(p, m, s, shape.chunks, shape.advance)[name]
            assert held in (None, max(in_flight(own))), (shape, s)
            live = max(max(live_versions(own, stage)) for stage in coordinates.stages)
            bound = versions(p, m, s).get(name, 1)
            assert live == bound if m >= 2 * p else live <= bound, (shape, s)
        checked += 1
    assert checked >= 15


@pytest.mark.parametrize("batches", [2, 5])
@pytest.mark.parametrize("p", POSITIONS)
def test_double_buffering_keeps_two_versions(p, batches):
    shape = Shape((1,) * p, batches * max(p, 2), max(p, 2))
    program = lower(schedule("2bw"), shape)
    for coordinates in shape.coordinates:
        assert max(live_versions(program.ranks[coordinates.rank], coordinates.pipeline_rank)) == 2


def cost(name, shape, times):
    durations = UniformDurations(*times, chunks=shape.chunks)
    program = lower(schedule(name), shape)
    timeline = simulate(program, durations)
    assert oracle.simulate(unpack(program), durations) == timeline
    return cost_seconds(timeline)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", ["gpipe", "1f1b-flush", "afp"])
def test_a_flush_costs_p_minus_1_microbatches(name, times):
    """Bubble (p-1)/(m+p-1); AFP as 1F1B where messages are free."""
    for shape in shapes(name):
        p, m = shape.pipeline_size, shape.num_microbatches
        assert cost(name, shape, times) == pytest.approx((m + p - 1) * sum(times))


@pytest.mark.parametrize("times", TIMES)
def test_interleaving_costs_p_minus_1_chunks(times):
    """Bubble (p-1)/(v m) of the ideal time."""
    for shape in shapes("interleaved"):
        p, m, v = shape.pipeline_size, shape.num_microbatches, shape.chunks
        ideal = m * sum(times)
        assert cost("interleaved", shape, times) == pytest.approx(ideal + (p - 1) * sum(times) / v)


@pytest.mark.parametrize(("name", "weights"), [("zb-h1", 1), ("zb-h2", 2)])
@pytest.mark.parametrize("times", [(1.0, 1.0, 1.0), (1.5, 1.5, 1.0), (1.25, 1.0, 1.0)])
def test_zero_bubble_costs_what_the_weights_do_not_fill(name, weights, times):
    """(p-1) (F+B-W) for H1, (p-1) (F+B-2W) for H2, with enough microbatches."""
    f, b, w = times
    for p in POSITIONS:
        shape = Shape((1,) * p, 4 * p, 4 * p)
        bubble = (p - 1) * (f + b - weights * w)
        assert cost(name, shape, times) == pytest.approx(4 * p * sum(times) + bubble)


@pytest.mark.parametrize("name", ["pipedream", "pipedream-vertical-sync", "pipedream-naive", "2bw"])
@pytest.mark.parametrize("times", TIMES)
def test_what_never_drains_fills_once(name, times):
    for p in POSITIONS:
        shape = Shape((1,) * p, 10 * p, p)
        assert cost(name, shape, times) == pytest.approx((10 * p + p - 1) * sum(times))


@pytest.mark.parametrize("num_pipelines", [2, 3])
@pytest.mark.parametrize("p", [2, 4])
def test_pipelines_fill_each_others_bubbles(p, num_pipelines):
    """AvgPipe's reason: N pipelines cost less than N times one, and no less than their compute."""
    one = cost("afp", Shape((1,) * p, 4, 4), (1.0, 1.0, 1.0))
    many = cost(
        "afp", Shape((1,) * p, 4 * num_pipelines, 4, num_pipelines=num_pipelines), (1.0, 1.0, 1.0)
    )
    assert num_pipelines * 4 * 3.0 <= many < num_pipelines * one
