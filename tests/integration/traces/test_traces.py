"""Traces that torch.profiler really wrote: of one's own training step, and of two ranks."""

import gzip
import json
from pathlib import Path
from statistics import median

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from backend.cluster.presets import local
from backend.comparison.traced_runs import traced_run
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.document import check_profile
from backend.profiles.files import read_profile_file
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.traces.trace_file import read_trace_path
from tests.contract.launching import launch
from tests.integration.traces import traced_rank
from tests.unit.test_docs import DOCS

GUIDE = (DOCS / "guide" / "traces.md").read_text()


def model() -> nn.Sequential:
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Linear(512, 512), nn.ReLU())
    return nn.Sequential(nn.Linear(32, 512), nn.ReLU(), wide, nn.Linear(512, 4))


def trained(net: nn.Module, steps: int) -> None:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.randn(64, 32)), torch.randint(4, (64,)))
        loss.backward()
        optimizer.step()


def traced(net: nn.Module, file: Path, steps: int = 4, **options: bool) -> Path:
    with profile(activities=[ProfilerActivity.CPU], **options) as found:
        trained(net, steps)
    found.export_chrome_trace(str(file))
    return file


def test_ranges_by_the_guides_ten_lines_make_a_profile(tmp_path: Path) -> None:
    snippet = GUIDE.split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(snippet, names)
    net = model()
    for name, layer in net.named_children():
        names["watch"](name, layer)  # type: ignore[operator]
    file = traced(net, tmp_path / "step.json.gz", record_shapes=True)
    found = read_profile_file(file.name, file.read_bytes())
    check_profile(found)
    assert [layer.name for layer in found.layers] == ["0", "1", "2", "3"]
    assert found.microbatch == 64
    assert found.repetitions == 3
    sizes = [sum(4 * p.numel() for p in child.parameters()) for child in net.children()]
    assert [layer.parameter_bytes for layer in found.layers] == sizes
    assert [layer.output_bytes for layer in found.layers] == [64 * 512 * 4] * 3 + [64 * 4 * 4]
    for layer in found.layers:
        assert layer.forward > 0
        assert layer.backward > 0
    assert found.layers[2].update > found.layers[3].update > 0
    assert found.layers[1].update == 0
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    took = [e["dur"] / 1e6 for e in events if e.get("name") == f"layer 2 {sizes[2]}"]
    assert len(took) == 4
    assert found.layers[2].forward == pytest.approx(median(took[1:]), abs=2e-6)


def test_modules_are_named_by_stacks_and_sized_by_shapes(tmp_path: Path) -> None:
    net = model()
    file = traced(net, tmp_path / "step.json", record_shapes=True, with_stack=True)
    found = read_profile_file(file.name, file.read_bytes(), 64)
    kinds = [layer.name.split("_")[0] for layer in found.layers]
    assert [kind for kind in kinds if kind in ("Linear", "ReLU")] == (
        ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    )
    linear = [layer for layer in found.layers if layer.name.startswith("Linear")]
    sizes = [4 * sum(p.numel() for p in m.parameters()) for m in net.modules() if _is_linear(m)]
    assert [layer.parameter_bytes for layer in linear] == sizes
    assert all(layer.backward > 0 for layer in linear)


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear)


def test_a_trace_without_layers_or_backwards_says_what_to_do(tmp_path: Path) -> None:
    net = model()
    bare = traced(net, tmp_path / "bare.json", 1)
    with pytest.raises(InvalidInput, match="names no layers"):
        read_profile_file(bare.name, bare.read_bytes())
    with (
        profile(activities=[ProfilerActivity.CPU]) as found,
        torch.no_grad(),
        record_function("layer all"),
    ):
        net(torch.randn(4, 32))
    found.export_chrome_trace(str(tmp_path / "forward.json"))
    with pytest.raises(InvalidInput, match="no backward"):
        read_profile_file("forward.json", (tmp_path / "forward.json").read_bytes(), 4)


@pytest.fixture(scope="module")
def rank_traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of two real processes of a plain loop, of which the second sleeps."""
    folder = tmp_path_factory.mktemp("ranks")
    launch([folder], 2, traced_rank.__name__)
    return [folder / f"rank{rank}.json.gz" for rank in range(2)]


def a_plan(batch: int = traced_rank.MICROBATCHES, replicas: int = 1) -> tuple[Profile, Plan]:
    layers = tuple(Layer(name, "Linear", 1e-3, 2e-3, 16384, 262_144) for name in "ab")
    stages = (Stage(0, 1, tuple(range(replicas))), Stage(1, 2, (replicas,)))
    plan = Plan("by hand", Partition(stages), "gpipe", traced_rank.SAMPLES, batch)
    return Profile("two", ModelGraph.chain(layers), traced_rank.SAMPLES), plan


def test_two_ranks_are_laid_beside_the_prediction(rank_traces: list[Path]) -> None:
    traces = [read_trace_path(path) for path in rank_traces]
    assert [trace.rank for trace in traces] == [0, 1]
    profile, plan = a_plan()
    found, measured, predicted = traced_run(traces[::-1], profile, local(2), plan)
    assert found.steps == traced_rank.STEPS
    assert found.unmatched == 0
    assert {(s.rank, s.index, s.action) for s in measured.spans} == {
        (s.rank, s.index, s.action) for s in predicted.spans
    }
    assert found.ranks[1].computed > traced_rank.MICROBATCHES * traced_rank.SLEEP
    assert found.slow[0].rank == 1
    assert found.predicted_makespan > 0
    assert found.makespan > found.ranks[1].computed
    assert 0 < found.bubble < 1
    assert found.ranks[0].waiting > found.ranks[1].waiting


def test_traces_of_another_plan_are_refused(rank_traces: list[Path]) -> None:
    traces = [read_trace_path(path) for path in rank_traces]
    profile, plan = a_plan()
    with pytest.raises(InvalidInput, match="1 traces for a plan of 2 ranks"):
        traced_run(traces[:1], profile, local(2), plan)
    three, more = a_plan(replicas=2)
    with pytest.raises(InvalidInput, match="2 traces for a plan of 3 ranks"):
        traced_run(traces, three, local(3), more)


def test_a_cut_trace_is_refused_with_what_to_do(rank_traces: list[Path], tmp_path: Path) -> None:
    whole = rank_traces[0].read_bytes()
    for name, data, told in (
        ("cut.json.gz", whole[: len(whole) // 2], "cut off"),
        ("cut.json", gzip.decompress(whole)[:-1000], "not JSON, or cut off"),
        ("other.json", json.dumps({"a": 1}).encode(), "no trace"),
        ("picture.json.gz", b"\x1f\x8bnothing", "not a gzip file"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidInput, match=told) as refused:
            read_trace_path(tmp_path / name)
        assert refused.value.advice
