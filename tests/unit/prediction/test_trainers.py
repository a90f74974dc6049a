"""A plan as other trainers read it: against their documented grammar, and what is refused."""

import re
import subprocess
from ast import literal_eval, parse

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.exchange.forms import FORMS
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.planning.balanced import copied, interleaved, side_by_side
from backend.planning.cuts import BY_HAND
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.programs import exported
from backend.prediction.trainers.forms import PLAN_FORMS, TRAINERS, plan_form
from backend.prediction.trainers.names import NAMES
from backend.profiles.crossing import TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

CLUSTER = Cluster((Level(8, 1e9),))


def a_profile(*named: tuple[str, str], tied: tuple[TiedWeight, ...] = ()) -> Profile:
    layers = tuple(Layer(name, kind, 1e-3, 2e-3, 64, 64) for name, kind in named)
    edges = tuple((n, n + 1) for n in range(len(layers) - 1))
    return Profile("gpt", ModelGraph(layers, edges, tied_weights=tied), 4)


EMBED = (("tokens", "Embedding"), ("add", "add"))
BLOCKS = a_profile(*EMBED, *((f"layers.{n}", "Block") for n in range(6)), ("head", "Linear"))
FINE = a_profile(
    ("stem", "Conv2d"),
    ("relu", "ReLU"),
    ("body.0.up", "Linear"),
    ("body.0.gelu", "gelu"),
    ("body.0.down", "Linear"),
    ("body.0.add", "add"),
    ("body.0.mul", "mul"),
    ("relu_2", "ReLU"),
    ("head", "Linear"),
)


def a_plan(cut: Partition, schedule: str = "1f1b-flush", batch: int = 8, **more: object) -> Plan:
    return Plan(BY_HAND, cut, schedule, 4, batch, **more)


def text_of(form: str, plan: Plan, profile: Profile = BLOCKS) -> str:
    return exported(profile, CLUSTER, plan, TRAINERS[form]).decode()


def values_of(source: str) -> dict[str, object]:
    """The constants of a Python file that are plain values."""
    found = {}
    for node in parse(source).body:
        if hasattr(node, "targets"):
            try:
                found[node.targets[0].id] = literal_eval(node.value)
            except ValueError:
                continue
    return found


THREE = side_by_side([3, 6, 9])
CHUNKED = interleaved(BLOCKS, 2, 1, 2)


def test_every_schedule_that_drains_has_its_names():
    drains = {each.name for each in SCHEDULES.values() if each.flushes and each.trains}
    assert NAMES.keys() == drains


@pytest.mark.parametrize("name", [each.name for each in SCHEDULES.values() if each.is_v])
def test_torchs_traced_stages_take_no_v(name):
    plan = a_plan(CHUNKED).under(name, 8)
    with pytest.raises(InvalidInput, match=f"'{name}' hands over within a rank"):
        text_of("torch", plan)
    order = exported(BLOCKS, CLUSTER, plan, FORMS["csv"]).decode().split()
    assert [{cell[0] for cell in row.split(",")} for row in order] == [{"0", "3"}, {"1", "2"}]


def test_torchtitan_has_no_v_but_those_that_it_names():
    plan = a_plan(CHUNKED)
    assert "'ZBVZeroBubble'" in text_of("torchtitan", plan.under("zb-v", 8))
    with pytest.raises(InvalidInput, match="round the ranks, and 'v-half' has a V"):
        text_of("torchtitan", plan.under("v-half", 8))


def layers_of(layout: str) -> list[str]:
    """The stages of a layout with every layer a letter, by the grammar of Megatron-Core's docs."""
    return [re.sub(r"(\w)\*(\d+)", lambda m: m[1] * int(m[2]), each) for each in layout.split("|")]


@pytest.mark.parametrize(
    ("plan", "stages", "size", "total"),
    [
        (a_plan(THREE), ["Et", "ttt", "ttL"], 3, 32),
        (a_plan(side_by_side([2, 9])), ["E", "ttttttL"], 2, 32),
        (a_plan(side_by_side([1, 9])), ["E", "ttttttL"], 2, 32),
        (a_plan(side_by_side([3, 8, 9])), ["Et", "ttttt", "L"], 3, 32),
        (a_plan(copied([5, 9], 2)), ["Ettt", "tttL"], 2, 32),
        (a_plan(CHUNKED, "interleaved"), None, 2, 32),
    ],
)
def test_megatron_is_told_in_arguments_for_a_shell(plan, stages, size, total):
    file = text_of("megatron", plan)
    said = subprocess.run(
        ["bash", "-c", 'eval "$0"; printf "%s\n" "${STAGEFLOW_PLAN[@]}"', file],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    told = dict(zip(said[::2], said[1::2], strict=True))
    held = layers_of(told.pop("--pipeline-model-parallel-layout"))
    if stages is None:  # as many letters as the plan has layers, the first with two
        cut = plan.partition.stages
        assert "".join(held) == "EttttttL"
        assert [len(each) for each in held] == [
            s.stop - s.first - (s.first == 0) for s in cut
        ]  # tokens and add are E
    else:
        assert held == stages
    assert told == {
        "--pipeline-model-parallel-size": str(size),
        "--num-layers": "6",
        "--micro-batch-size": "4",
        "--global-batch-size": str(total),
    }


def test_what_a_plan_counts_on_is_switched_on_or_said():
    plan = a_plan(copied([5, 9], 2), recompute=True, shard_state=True)
    file = text_of("megatron", plan)
    assert "--recompute-granularity full" in file
    assert "--use-distributed-optimizer" in file
    told = values_of(text_of("deepspeed", plan))
    assert told["CONFIG"] == {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 4,
        "zero_optimization": {"stage": 1},
    }
    for form in TRAINERS:
        said = " ".join(text_of(form, plan).replace("#", "").split())
        assert "averaged over the 2 pipelines" in said
        assert "activations that are computed again" in said
        assert "sharded over replicas" in said
    tied = a_profile(
        *((layer.name, layer.kind) for layer in BLOCKS.layers),
        tied=(TiedWeight(0, (8,), "tokens.weight", 64),),
    )
    assert "tokens.weight is read on stages 0, 2" in text_of("torch", a_plan(THREE), tied)


def test_deepspeed_is_told_where_its_list_of_layers_is_cut():
    told = values_of(text_of("deepspeed", a_plan(THREE)))
    assert told["LAYERS"] == ("tokens", *(f"layers.{n}" for n in range(6)), "head")
    assert told["PARTS"] == (0, 2, 5, 8)
    assert told["NUM_STAGES"] == 3
    assert "belong into layers of your list: add." in text_of("deepspeed", a_plan(THREE))


@pytest.mark.parametrize(
    ("plan", "name", "file"),
    [
        (a_plan(THREE), "1F1B", ""),
        (a_plan(THREE, "gpipe"), "GPipe", ""),
        (a_plan(CHUNKED, "interleaved"), "Interleaved1F1B", ""),
        (a_plan(THREE, "zb-h1"), "1F1B", "schedule.csv"),
    ],
)
def test_torchtitan_is_told_in_the_keys_of_its_configuration(plan, name, file):
    told = values_of(text_of("torchtitan", plan))
    keys = told["PARALLELISM"]
    parts = keys.pop("module_fqns_per_model_part")
    assert [path for part in parts for path in part] == [
        each.name for each in BLOCKS.layers if each.name != "add"
    ]
    assert len(parts) == len(plan.partition.stages)
    assert keys == {
        "pipeline_parallel_degree": plan.partition.pipeline_size,
        "pipeline_parallel_schedule": name,
        "pipeline_parallel_schedule_csv": file,
        "pipeline_parallel_microbatch_size": 4,
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 1,
    }
    assert told["LOCAL_BATCH_SIZE"] == 32
    assert told["SCHEDULE_CSV"] == csv_of(plan)


def csv_of(plan: Plan) -> str:
    return exported(BLOCKS, CLUSTER, plan, FORMS["csv"]).decode().replace("\r", "")


@pytest.mark.parametrize("schedule", NAMES)
def test_torch_is_told_the_order_of_one_pipeline(schedule):
    cut = CHUNKED if schedule == "interleaved" else THREE
    plan = a_plan(cut, schedule)
    told = values_of(text_of("torch", plan))
    assert told["CSV"] == csv_of(plan)
    assert told["MICROBATCHES"] == 8
    size = cut.pipeline_size
    stages = range(len(cut.stages))
    assert told["STAGES"] == tuple(tuple(stages[rank::size]) for rank in range(size))
    both = values_of(text_of("torch", a_plan(copied([5, 9], 2), schedule)))
    half = values_of(text_of("torch", a_plan(side_by_side([5, 9]), schedule, batch=4)))
    assert both == half


def test_torch_is_told_modules_before_or_behind_which_it_splits():
    def points(*ends: int) -> str:
        file = text_of("torch", a_plan(side_by_side([*ends, 9])), FINE)
        return re.search(r"SPLIT_SPEC = \{(.*?)\}", file, re.S)[1].split()

    assert points(2) == ["'body.0.up':", "SplitPoint.BEGINNING,"]
    assert points(3) == ["'body.0.up':", "SplitPoint.END,"]
    with pytest.raises(InvalidInput, match=r"both before and behind body\.0\.down"):
        points(4, 5)
    with pytest.raises(InvalidInput, match=r"between body\.0\.add and body\.0\.mul, neither"):
        points(6)
    with pytest.raises(InvalidInput, match=r"between body\.0\.mul and relu_2, neither"):
        points(7)
    with pytest.raises(InvalidInput, match=r"goes through body\.0, which is placed as a whole"):
        text_of("torchtitan", a_plan(side_by_side([4, 9])), FINE)


@pytest.mark.parametrize(
    ("form", "plan", "reason"),
    [
        ("torch", a_plan(THREE, "pipedream", 1), "'pipedream' keeps versions of the weights"),
        ("torchtitan", a_plan(THREE, "2bw"), "'2bw' keeps versions of the weights"),
        ("torch", a_plan(copied([9], 2)), "one stage: there is no pipeline"),
        ("megatron", a_plan(THREE, "gpipe"), "1F1B or interleaved 1F1B, not by 'gpipe'"),
        ("deepspeed", a_plan(CHUNKED, "interleaved"), "one schedule, 1F1B with a flush"),
        ("torch", a_plan(THREE, num_pipelines=2), "2 parallel pipelines have weights of their own"),
        ("deepspeed", a_plan(copied([5, 9], 2), batch=5), "5 microbatches are not shared evenly"),
    ],
)
def test_what_cannot_be_said_there_is_refused_in_words(form, plan, reason):
    with pytest.raises(InvalidInput, match=reason):
        text_of(form, plan)


def test_unequal_replicas_other_orders_and_other_models_are_refused():
    cut = Partition((Stage(0, 5, (0, 1)), Stage(5, 9, (2,))))
    for form in TRAINERS:
        with pytest.raises(InvalidInput, match=r"unequal numbers of replicas \(2-1\)"):
            text_of(form, a_plan(cut))
    free = Profile("free", ModelGraph(BLOCKS.layers, ()), 4)
    order = (1, 0, *range(2, 9))
    with pytest.raises(InvalidInput, match="another order than the model's own"):
        text_of("torch", a_plan(Partition(THREE.stages, order)), free)
    pieces = a_profile(("tokens", "Embedding"), ("norm", "LayerNorm"), ("h.0", "B"))
    with pytest.raises(InvalidInput, match="the embedding is one piece"):
        text_of("megatron", a_plan(side_by_side([1, 3])), pieces)
    with pytest.raises(InvalidInput, match="2 lists of numbered layers"):
        text_of("megatron", a_plan(side_by_side([1, 2])), a_profile(("a.0", "B"), ("b.0", "B")))
    with pytest.raises(InvalidInput, match="one update, which is 8 microbatches"):
        exported(BLOCKS, CLUSTER, a_plan(THREE), TRAINERS["torch"], 16)


def test_forms_are_known_by_name():
    assert plan_form("csv") is FORMS["csv"]
    assert PLAN_FORMS.keys() == FORMS.keys() | TRAINERS.keys()
    with pytest.raises(InvalidInput, match="no form 'onnx' of plans"):
        plan_form("onnx")


def test_names_of_other_peoples_models_stay_in_their_strings():
    bad = a_profile(('a"""\nimport os', "Linear"), ("b\\", "Linear"))
    profile = Profile('m"""\nimport os\n', bad.graph, 4)
    for form in ("torch", "torchtitan", "deepspeed"):
        source = text_of(form, a_plan(side_by_side([1, 2])), profile)
        imports = [each for each in parse(source).body if type(each).__name__ == "Import"]
        assert imports == []
    shell = a_profile(("h.0", "B"), ("h.1", "B"))
    shell = Profile("x\n$(touch /tmp/no)\nSTAGEFLOW_PLAN=(", shell.graph, 4)
    lines = text_of("megatron", a_plan(side_by_side([1, 2])), shell).splitlines()
    assert [line for line in lines if line[:1] not in ("#", " ", ")")] == ["STAGEFLOW_PLAN=("]


AROUND = a_profile(
    ("model.embed", "Embedding"),
    ("model", "LlamaModel"),
    ("model.add", "add"),
    *((f"model.layers.{n}", "Block") for n in range(4)),
    ("lm_head", "Linear"),
)


def test_what_a_forward_does_between_its_modules_places_none_of_them():
    """A layer of the path `model` is a part of its forward, and not all that lies in `model`."""
    plan = a_plan(side_by_side([5, 8]))
    parts = values_of(text_of("torchtitan", plan, AROUND))["PARALLELISM"]
    assert parts["module_fqns_per_model_part"] == [
        ["model.embed", "model.layers.0", "model.layers.1"],
        ["model.layers.2", "model.layers.3", "lm_head"],
    ]
    listed = values_of(text_of("deepspeed", plan, AROUND))
    assert "model" not in listed["LAYERS"]
    assert listed["PARTS"] == (0, 3, 6)
    assert "of your list: model, model.add." in text_of("deepspeed", plan, AROUND)
    with pytest.raises(InvalidInput, match="neither of which is a module"):
        text_of("torch", a_plan(side_by_side([2, 8])), AROUND)
