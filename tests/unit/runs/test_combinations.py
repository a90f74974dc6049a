"""What cannot be combined is refused with its reason; what can be is not."""

from dataclasses import replace

import pytest

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.combinations import check_combinations
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from backend.runs.request.sample_specs import PictureSpec
from backend.runs.request.spec import DataSpec, TrainSpec
from backend.runs.request.text_spec import TextSpec

TWO = Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,))))
REPLICATED = Partition((Stage(0, 1, (0, 1)), Stage(1, 2, (2,))))
FLIPPED, CENTRED = PictureSpec(flip=True), PictureSpec(mean=(0.5,), deviation=(0.2,))
CHUNKS = Partition((*TWO.stages, Stage(2, 3, (0,)), Stage(3, 4, (1,))), chunks=2)


def spec(schedule: str, partition: Partition = TWO, optimizer=None, **plan) -> TrainSpec:
    made = Plan("test", partition, schedule, 8, plan.pop("batch", 4), **plan)
    return TrainSpec(1, made, optimizer=optimizer or OptimizerSpec())


@pytest.mark.parametrize(
    "allowed",
    [
        *(spec(member.name) for member in SCHEDULES.values() if member.trains),
        spec("interleaved", CHUNKS),
        spec("gpipe", Partition(TWO.stages, order=(0, 1))),
        spec("gpipe", recompute=True),
        spec("2bw", recompute=True),
        spec("pipedream", REPLICATED, shard_state=True),
        spec("local", num_pipelines=2),
        spec("afp", REPLICATED, num_pipelines=2, shard_state=True),
        spec("afp", num_pipelines=2, optimizer=OptimizerSpec(clip_norm=1.0)),
        spec("zb-h1", optimizer=OptimizerSpec("adamw", weight_decay=0.1, decay="cosine")),
        spec("gpipe", Partition(TWO.stages, order=(1, 0))),
        replace(spec("gpipe", num_pipelines=2), precision="float16"),
        spec("pipedream", optimizer=OptimizerSpec(clip_norm=1.0, clip_by="stage")),
        spec("gpipe", optimizer=OptimizerSpec("lion", betas=(0.95, 0.98), ema=0.999)),
        spec("2bw", optimizer=OptimizerSpec("adamw", eps=1e-6, warm_up_updates=10)),
        replace(spec("pipedream"), precision="bfloat16"),
        replace(spec("2bw"), precision="bfloat16", state_precision="bfloat16-masters"),
        replace(spec("gpipe"), precision="float16", state_precision="float32-state16"),
        spec("local", REPLICATED, shard_state=True, recompute=True),
        replace(spec("local"), local_head="similarity"),
        replace(spec("pipedream", codecs=("aq4",)), data=DataSpec(pictures=CENTRED)),
        replace(spec("gpipe", codecs=("int4",)), data=DataSpec(pictures=FLIPPED)),
        spec("interleaved", CHUNKS, codecs=("aq2", "aq4", "")),
    ],
    ids=lambda each: each.plan.schedule,
)
def test_what_runs(allowed: TrainSpec) -> None:
    check_combinations(allowed)


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (spec("pipedream", REPLICATED, codecs=("aq4",)), r"another replica .*partition 2-1"),
        (spec("afp", num_pipelines=2, codecs=("aq4",)), "another of 2 pipelines"),
        (
            replace(spec("gpipe", codecs=("aq2",)), data=DataSpec(pictures=FLIPPED)),
            "pictures are augmented anew",
        ),
        (
            replace(spec("gpipe", codecs=("aq2",)), data=DataSpec(text=TextSpec(task="masked"))),
            "other tokens are hidden",
        ),
        (spec("forward-only"), "no schedule 'forward-only' that trains"),
        (spec("pipedream", optimizer=OptimizerSpec(clip_norm=1.0)), "never flushes"),
        (spec("2bw", optimizer=OptimizerSpec(clip_norm=1.0)), "never flushes"),
        (spec("gpipe", optimizer=OptimizerSpec(clip_norm=0.0)), "norm of 0"),
        (spec("pipedream-naive", recompute=True), "gives other activations"),
        (replace(spec("gpipe"), local_head="linear"), "has one loss, at the last stage"),
        (replace(spec("local"), local_head="deep"), "there is no local head 'deep'"),
        (spec("local", optimizer=OptimizerSpec(clip_norm=1.0)), "never flushes"),
        (spec("pipedream-naive", num_pipelines=2), "2 pipelines could exchange"),
        (spec("gpipe", CHUNKS), "one stage per pipeline rank"),
        (spec("2bw", batch=1), "runs 2 ahead"),
        (replace(spec("afp", num_pipelines=2), elasticity=0.75), "not in 0 up to 1 over"),
        (spec("gpipe", shard_state=True), "nobody to share the optimizer's state with"),
        (spec("afp", num_pipelines=2, shard_state=True), "no stage of partition .* replicas"),
        (spec("gpipe", optimizer=OptimizerSpec(weight_decay=-1.0)), "weight decay -1"),
        (spec("gpipe", optimizer=OptimizerSpec(warm_up=-1.0)), "warm-up of -1"),
        (spec("gpipe", optimizer=OptimizerSpec(decay_factor=0.0)), "a decay by 0"),
        (spec("gpipe", optimizer=OptimizerSpec(betas=(0.9, 0.99))), "momentum with betas"),
        (spec("gpipe", optimizer=OptimizerSpec("adam", betas=(0.9, 1.0))), "betas 0.9 and 1"),
        (spec("gpipe", optimizer=OptimizerSpec("lion", eps=1e-8)), "Lion with eps"),
        (spec("gpipe", optimizer=OptimizerSpec("adam", eps=0.0)), "Adam with eps 0"),
        (spec("gpipe", optimizer=OptimizerSpec(ema=1.0)), "of which 1 stay"),
        (spec("gpipe", optimizer=OptimizerSpec(warm_up=1.0, warm_up_updates=5)), "a warm-up of 5"),
        (spec("gpipe", optimizer=OptimizerSpec(groups=(ParameterGroup(""),))), "has no names"),
        (
            spec("gpipe", REPLICATED, shard_state=True, optimizer=OptimizerSpec("adafactor")),
            "reads whole matrices",
        ),
        *(
            (replace(spec("gpipe"), precision=compute, state_precision=kept), f"in {compute}")
            for compute in ("float32", "float16")
            for kept in ("bfloat16", "bfloat16-state32", "bfloat16-masters")
        ),
        *(
            (replace(spec(name), precision="float16"), "whether a gradient overflowed")
            for name in ("pipedream", "pipedream-vertical-sync", "pipedream-naive", "2bw")
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_does_not(refused: TrainSpec, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        check_combinations(refused)
    assert caught.value.advice
