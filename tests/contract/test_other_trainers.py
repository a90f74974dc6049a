"""The libraries themselves read the files, where they are installed; they are no extras of ours.

What their documentation says is tested in tests/unit/prediction/test_trainers.py in any case.
"""

import ast
import re
from types import SimpleNamespace

import pytest

from backend.planning.balanced import copied, side_by_side
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.trainers.forms import TRAINERS
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

NAMES = ("tok_embeddings", *(f"layers.{n}" for n in range(6)), "norm", "output")
PROFILE = Profile(
    "llama",
    ModelGraph.chain(tuple(Layer(name, "Module", 1e-3, 2e-3, 64, 64) for name in NAMES)),
    4,
)
CHUNKED = Partition(
    tuple(Stage(*ends, (n % 2,)) for n, ends in enumerate(((0, 2), (2, 4), (4, 6), (6, 9)))),
    chunks=2,
)
PLANS = (
    Plan("by-hand", side_by_side([3, 5, 9]), "1f1b-flush", 4, 8),
    Plan("by-hand", copied([4, 9], 2), "1f1b-flush", 4, 8),
    Plan("by-hand", CHUNKED, "interleaved", 4, 8),
)


def text_of(form: str, plan: Plan) -> str:
    return TRAINERS[form].of(PROFILE, plan).decode()


def executed(source: str) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(compile(ast.parse(source), "plan.py", "exec"), found)
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_megatron_core_parses_the_layout(plan):
    layouts = pytest.importorskip("megatron.core.transformer.pipeline_parallel_layer_layout")
    text = text_of("megatron", plan)
    size = int(re.search(r"parallel-size (\d+)", text)[1])
    layout = re.search("layout '(.*)'", text)[1]
    found = layouts.PipelineParallelLayerLayout(layout, size)
    found.validate_layer_layout(num_layers=6, mtp_num_layers=0)
    cut = plan.partition
    for number, stage in enumerate(cut.stages):
        here = [n - 1 for n in range(stage.first, stage.stop) if 1 <= n <= 6]
        rank, chunk = number % size, number // size
        letters = [each.name for each in found.layout[rank][chunk]]
        assert letters.count("decoder") == len(here)
        assert letters.count("embedding") == (number == 0)
    assert found.virtual_pipeline_model_parallel_size == cut.chunks


@pytest.mark.parametrize("plan", PLANS)
def test_torchtitan_takes_the_keys_and_keeps_the_modules(plan):
    config = pytest.importorskip("torchtitan.config")
    pipelines = pytest.importorskip("torchtitan.distributed.pipeline_parallel")
    from torch import nn

    found = executed(text_of("torchtitan", plan))
    taken = config.ParallelismConfig(**found["PARALLELISM"])
    module = pytest.importorskip("torchtitan.protocols.module")
    for number, part in enumerate(taken.module_fqns_per_model_part):
        whole = nn.Module()
        for name in ("tok_embeddings", "norm", "output"):
            whole.add_module(name, nn.Linear(1, 1))
        whole.layers = module.ModuleDict({str(n): nn.Linear(1, 1) for n in range(6)})
        kept = pipelines._split_module(whole, part)
        left = {name for name, each in kept.named_modules() if isinstance(each, nn.Linear)}
        stage = plan.partition.stages[number]
        assert left == set(NAMES[stage.first : stage.stop])


@pytest.mark.parametrize("plan", PLANS[:2])
def test_deepspeed_cuts_where_the_plan_does(plan):
    pytest.importorskip("deepspeed.pipe")
    found = executed(text_of("deepspeed", plan))
    cut = plan.partition
    for number, stage in enumerate(cut.stages):
        made = object.__new__(found["Planned"])
        made.__dict__ |= {
            "_layer_specs": list(found["LAYERS"]),
            "global_rank": number,
            "_topo": SimpleNamespace(get_coord=lambda rank: SimpleNamespace(pipe=rank)),
        }
        made._partition_layers()
        assert (made._local_start, made._local_stop) == (stage.first, stage.stop)
    made._layer_specs.append("one more")
    with pytest.raises(ValueError, match="10 layers, the plan is for 9"):
        made._partition_layers()
