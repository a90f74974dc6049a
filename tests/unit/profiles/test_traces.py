"""Traces in the documented format: kernels on a GPU, files that are none, names of microbatches."""

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.presets import local
from backend.comparison.traced_runs import traced_run
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.traces import trace_file
from backend.profiles.traces.trace_file import read_torch_trace, read_trace_path
from backend.profiles.traces.traced_profile import traced_profile
from tests.unit.profiles.traces_by_hand import file, launched, on_a_gpu, row


def test_kernels_belong_to_the_layer_that_launched_them() -> None:
    found = traced_profile(read_torch_trace("gpu.json", on_a_gpu()), 32)
    assert found.device == "NVIDIA H100"
    first, second = found.layers
    assert (first.forward, second.forward) == pytest.approx((100e-6, 200e-6))
    assert (first.backward, second.backward) == pytest.approx((400e-6, 300e-6))
    assert (first.output_bytes, second.output_bytes) == (256, 128)
    assert (first.parameter_bytes, second.parameter_bytes) == (4000, 400)


def test_without_shapes_the_samples_are_asked_for() -> None:
    with pytest.raises(InvalidInput, match="how many samples"):
        traced_profile(read_torch_trace("gpu.json", on_a_gpu()))


def rank(number: int, *names: str, communicates: bool = False) -> bytes:
    """Ranges of 100 us, one after another; in each an operation in its second half, before it
    maybe a wait for a message."""
    rows = []
    for place, name in enumerate(names):
        rows.append(row(name, "user_annotation", 100 * place, 100))
        if communicates:
            rows.append(row("gloo:recv", "cpu_op", 100 * place + 1, 40))
        rows.append(row("aten::mm", "cpu_op", 100 * place + 50, 50))
    return file(*rows, rank=number)


def planned(batch: int) -> tuple[Profile, Plan]:
    layers = tuple(Layer(name, "Linear", 50e-6, 50e-6, 0, 0) for name in "ab")
    plan = Plan("", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "gpipe", 1, batch)
    return Profile("two", ModelGraph.chain(layers), 1), plan


@pytest.mark.parametrize(
    ("names", "others"),
    [
        (("forward 0", "forward 1", "backward 0", "backward 1"),) * 2,
        (("Forward 0", "Forward 1", "Backward 0", "Backward 1"),) * 2,
        (("PP:0F0", "PP:0F1", "PP:0B0", "PP:0B1"), ("PP:1F0", "PP:1F1", "PP:1B0", "PP:1B1")),
        (
            ("forward 0 0", "forward 0 1", "backward 0 0", "backward 0 1"),
            ("forward 1 0", "forward 1 1", "backward 1 0", "backward 1 1"),
        ),
    ],
)
@pytest.mark.parametrize("communicates", [False, True])
def test_a_wait_for_a_message_is_no_compute(
    names: tuple[str, ...], others: tuple[str, ...], communicates: bool
) -> None:
    files = (rank(0, *names, communicates=communicates), rank(1, *others))
    traces = [read_torch_trace(str(number), data) for number, data in enumerate(files)]
    found, measured, _ = traced_run(traces, *_on_two(2))
    assert found.unmatched == 0
    assert found.makespan == pytest.approx(350e-6)
    for one in found.ranks:
        assert one.computed == pytest.approx(200e-6)
        assert one.predicted == pytest.approx(200e-6)
        assert not one.is_slow
    assert found.bubble == pytest.approx(1 - 200 / 350)
    assert len(measured) == 8


def _on_two(batch: int):
    profile, plan = planned(batch)
    return profile, local(2), plan


def test_on_a_gpu_kernels_say_when_a_rank_computes() -> None:
    def traced(number: int) -> bytes:
        names = ("forward 0", "backward 0")
        rows = [row(n, "user_annotation", 100 * place, 10) for place, n in enumerate(names)]
        return file(*rows, *launched(1, 5, 40, 60), *launched(2, 105, 140, 180), rank=number)

    traces = [read_torch_trace(str(number), traced(number)) for number in range(2)]
    found, _, _ = traced_run(traces, *_on_two(1))
    assert found.ranks[0].computed == pytest.approx(240e-6)
    assert {one.rank for one in found.slow} == {0, 1}


def test_actions_of_another_plan_are_counted() -> None:
    names = ("forward 0", "backward 0", "forward 7 0")
    traces = [read_torch_trace(str(n), rank(n, *names)) for n in range(2)]
    assert traced_run(traces, *_on_two(1))[0].unmatched == 2
    alien = [read_torch_trace(str(n), rank(n, "forward 8 0")) for n in range(2)]
    with pytest.raises(InvalidInput, match="no action of the plan"):
        traced_run(alien, *_on_two(1))
    many = [read_torch_trace(str(n), rank(n, "forward 99999")) for n in range(2)]
    with pytest.raises(InvalidInput, match="microbatch 99,999"):
        traced_run(many, *_on_two(1))
    mute = [read_torch_trace(str(n), rank(n, "step")) for n in range(2)]
    with pytest.raises(InvalidInput, match="names no microbatches") as refused:
        traced_run(mute, *_on_two(1))
    assert "record_function" in refused.value.advice


def test_a_large_file_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as sparse:
        sparse.truncate(500 * 2**20)
    with pytest.raises(InvalidInput, match="has 500 MiB") as refused:
        read_trace_path(large)
    assert "fewer steps" in refused.value.advice
    monkeypatch.setattr(trace_file, "MOST_BYTES", 1000)
    with pytest.raises(InvalidInput, match="MiB"):
        read_torch_trace("bomb.json.gz", gzip.compress(bytes(100_000)))


def test_a_small_file_of_too_many_values_is_refused_before_they_are_in_memory() -> None:
    data = gzip.compress(b'{"traceEvents":[' + b"[]," * 2_600_000 + b"{}]}", 1)
    assert len(data) < 100_000
    with pytest.raises(InvalidInput, match="values; a trace may have") as refused:
        read_torch_trace("bomb.json.gz", data)
    assert "fewer steps" in refused.value.advice


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_json_is_a_trace_or_refused(value: object) -> None:
    for body in (value, [value], {"traceEvents": value}, {"traceEvents": [value]}):
        with pytest.raises(InvalidInput) as refused:
            read_torch_trace("any.json", json.dumps(body).encode())
        assert refused.value.advice


@given(
    st.lists(
        st.fixed_dictionaries(
            {"ph": st.just("X"), "cat": st.sampled_from(["cpu_op", "kernel", "user_annotation"])},
            optional={
                "name": st.sampled_from(["layer a", "layer b 4", "forward 0", "output a 3", "x"]),
                "ts": st.floats() | st.integers() | st.text(),
                "dur": st.floats(0, 10) | st.integers(0, 9),
                "tid": st.integers(0, 2),
                "args": st.none()
                | st.fixed_dictionaries(
                    {},
                    optional={
                        "Sequence number": st.integers(-1, 3) | st.text(),
                        "correlation": st.integers(-1, 3),
                        "Input Dims": st.none() | st.lists(st.lists(st.integers(-1, 9))),
                        "Input type": st.lists(st.sampled_from(["float", "int", ""])),
                    },
                ),
            },
        ),
        max_size=12,
    )
)
def test_whatever_events_hold_the_answer_is_a_profile_or_a_message(events: list[object]) -> None:
    data = json.dumps({"traceEvents": events}).encode()
    try:
        trace = read_torch_trace("any.json", data)
    except InvalidInput:
        return
    for ask in (
        lambda: traced_profile(trace, 4),
        lambda: traced_profile(trace),
        lambda: traced_run([trace, trace], *_on_two(1)),
    ):
        with suppress(InvalidInput):
            ask()
