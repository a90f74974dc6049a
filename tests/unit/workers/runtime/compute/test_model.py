"""The layers that a run cuts: those of its plan's profile, in the precision that it trains in."""

import json
from itertools import pairwise

import pytest
import torch

from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.job import Job
from backend.runs.request.spec import DataSpec, TrainSpec
from workers.data.cutting import Cutting
from workers.data.split import DataSet, TensorSplit
from workers.definitions.cut import cut
from workers.definitions.loader import LoadedDefinition, load
from workers.definitions.module_state.untouched import untouched
from workers.definitions.prepare import prepare
from workers.definitions.samples import tensors
from workers.runtime.compute import stage as stages
from workers.runtime.compute.model import Layers, layers_of
from workers.runtime.state.rounding import rounded

CPU = torch.device("cpu")
T5 = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "d_model": 16,
    "d_ff": 32,
    "d_kv": 8,
    "num_layers": 1,
    "num_heads": 2,
    "vocab_size": 60,
}
BAKED = """
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        x = self.first(x)
        if len(x) == 2: x = torch.tanh(x)
        return self.second(x)
def model(): return Odd()
def example(n): return torch.rand(n, 4), torch.randint(4, (n,))
"""


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> LoadedDefinition:
    file = tmp_path_factory.mktemp("t5") / "config.json"
    file.write_text(json.dumps(T5))
    return load(file)


def layers(definition: LoadedDefinition, count: int = 6, **more) -> Layers:
    data = DataSet(TensorSplit(*definition.example(count)), None)
    plan = Plan("test", Partition((Stage(0, 1, (0,)),)), "1f1b-flush", 4)
    keep = more.pop("last", "drop")
    spec = TrainSpec(1, plan, data=DataSpec(last=keep), **more)
    job = Job(1, 1, "test", spec, str(definition.file), "/nowhere")
    return layers_of(job, spec, definition, data, Cutting(4, keep=keep == "keep"), CPU)


def test_a_plan_of_a_float32_profile_is_cut_alike_in_bfloat16(t5: LoadedDefinition) -> None:
    planned = prepare(t5, t5.example(4), granularity="fine")
    found = layers(t5, precision="bfloat16", planned_in="float32", granularity="fine").base
    assert [layer.name for layer in found.layers] == [layer.name for layer in planned.layers]
    assert torch.bfloat16 in {spec.dtype for bundle in found.specs for spec in bundle}
    assert torch.bfloat16 not in {spec.dtype for bundle in planned.specs for spec in bundle}


def test_its_stages_compute_what_the_model_computes_in_bfloat16(t5: LoadedDefinition) -> None:
    found = layers(t5, precision="bfloat16", planned_in="float32", granularity="fine").base
    inputs, targets = t5.example(4)
    with untouched(found.model), stages.autocast(CPU, "bfloat16"), torch.no_grad():
        whole = t5.loss(found.model.eval()(*tensors(inputs)), targets)
    bounds = [0, 9, 30, len(found.layers)]
    bundle = tuple(tensors(inputs))
    with untouched(found.model), torch.no_grad():
        for first, stop in pairwise(bounds):
            part = cut(found, first, stop).eval()
            loss = t5.loss if stop == bounds[-1] else None
            one = stages.StageModule(part, found.specs[first], loss, "bfloat16")
            assert [t.dtype for t in bundle] == [spec.dtype for spec in found.specs[first]]
            bundle, _ = one.forward(bundle, one.weights, targets)
    assert float(bundle[0]) == pytest.approx(float(whole), rel=2e-2)


@pytest.mark.parametrize("state", ["bfloat16-masters", "bfloat16"])
def test_bundles_are_those_of_weights_as_they_are_kept(t5: LoadedDefinition, state) -> None:
    """A tied embedding crosses cuts in bfloat16; norms compute with float32 scales."""
    found = layers(
        t5,
        precision="bfloat16",
        planned_in="float32",
        granularity="fine",
        state_precision=state,
    ).base
    kind = STATE_PRECISIONS[state]
    inputs, targets = t5.example(4)
    bounds = [0, 9, 30, len(found.layers)]
    bundle, own = tuple(tensors(inputs)), dict(found.model.named_parameters())
    assert {weight.dtype for weight in own.values()} == {torch.float32}
    with untouched(found.model), torch.no_grad():
        for first, stop in pairwise(bounds):
            part = cut(found, first, stop).eval()
            loss = t5.loss if stop == bounds[-1] else None
            one = stages.StageModule(part, found.specs[first], loss, "bfloat16")
            assert [t.dtype for t in bundle] == [spec.dtype for spec in found.specs[first]]
            bundle, _ = one.forward(bundle, rounded(one.weights, kind), targets)
    assert bundle[0].dtype == torch.float32
    assert torch.isfinite(bundle[0])
    without = layers(t5, precision="bfloat16", planned_in="float32", granularity="fine").base
    assert without.specs != found.specs


def test_the_runs_own_precision_is_traced_where_nothing_else_was_planned(
    t5: LoadedDefinition,
) -> None:
    with stages.autocast(CPU, "bfloat16"):
        own = prepare(t5, t5.example(4), granularity="fine")
    found = layers(t5, precision="bfloat16", planned_in="bfloat16", granularity="fine").base
    assert [layer.name for layer in found.layers] == [layer.name for layer in own.layers]


def test_a_smaller_microbatch_has_the_same_layers_of_other_sizes(zoo) -> None:
    found = layers(zoo("mlp"), last="keep")
    assert found.others.keys() == {(2, None)}
    other = found.others[2, None]
    assert [x.name for x in other.layers] == [x.name for x in found.base.layers]
    assert [b[0].shape[0] for b in found.base.specs] == [4] * len(found.base.specs)
    assert [b[0].shape[0] for b in other.specs] == [2] * len(other.specs)
    mine, theirs = (dict(model.model.named_parameters()) for model in (found.base, other))
    assert all(theirs[name] is weight for name, weight in mine.items())


def test_running_statistics_are_one_for_all_sizes(define) -> None:
    norm = "def model(): return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))\n"
    found = layers(define(norm + BAKED[BAKED.index("def example") :]), last="keep")
    mine, theirs = (dict(m.model.named_buffers()) for m in (found.base, found.others[2, None]))
    assert mine.keys() == theirs.keys() != set()
    assert all(theirs[name] is buffer for name, buffer in mine.items())


def test_a_model_with_other_layers_for_other_sizes_is_refused(define) -> None:
    with pytest.raises(InvalidInput, match="for microbatches of 2 samples the model has"):
        layers(define(BAKED), last="keep")
