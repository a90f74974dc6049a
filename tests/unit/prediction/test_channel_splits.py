"""What a plan would gain by layers split by channels: by hand, on published profiles, and where
nothing is told."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.codec import from_json, to_json
from backend.planning.baselines import data_parallel
from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.types import LayerType
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sharing_out import shared_out
from backend.prediction.answer import rank
from backend.prediction.channel_splits import channel_splits, split_reason, with_splits
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.prediction.split_profile import split_profile
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.unit.planning.published import FOLDER, at_batch, load

published = pytest.mark.skipif(not FOLDER.is_dir(), reason="no published profiles")
WIDE = (
    Layer("in", "Input", 0.0, 0.0, 8, 0),
    Layer("fc", "Linear", 1.0, 2.0, 8, 1000, update=0.5),
)


def asked(layers=WIDE, *, batch=2, bandwidth=100.0, speeds=(1.0, 1.0), schedule="1f1b-flush"):
    each = tuple(Device(f"x{speed:g}", speed=speed) for speed in speeds)
    cluster = Cluster((Level(len(speeds), bandwidth),), each[0], each)
    profile = Profile("wide", ModelGraph.chain(layers), 1)
    stages = (Stage(0, len(layers), tuple(range(len(speeds)))),)
    plan = Plan("by-hand", Partition(stages), schedule, 1, batch)
    return Question(profile, cluster, batch=batch), plan


def test_the_rate_is_that_of_compute_and_exchanges_by_hand():
    """Two microbatches of 8 bytes on two replicas: compute 3 s, then 10 s of sums and 0.5 s of
    update; or by input channels a quarter there and back and the sum of outputs of 16 bytes, half
    of the gradient back, 0.32 s at 100 bytes/s, and 0.25 s of update."""
    question, plan = asked()
    assert question.predict(plan).samples_per_second == pytest.approx(2 / 13.5)
    found = channel_splits(question, plan)
    assert found.stages[0].kinds == (LayerType.SAMPLES, LayerType.INPUTS)
    assert found.samples_per_second == pytest.approx(2 / (3 + 0.32 + 0.25))
    assert found.gain == pytest.approx(13.5 / 3.57)


def test_unequal_devices_with_shares_have_unequal_parts():
    """Speeds 1 and 2 take 2 and 4 of 6 microbatches, 6 s; the slower lacks most: 4/6 of what all
    read, 2/9 of channels. Input and output channels take the same."""
    question, plan = asked(speeds=(1.0, 2.0), batch=6, bandwidth=1000.0)
    shared = shared_out(plan, question.cluster)
    found = channel_splits(question, shared)
    assert found.stages[0].replicas.parts == pytest.approx((1 / 3, 2 / 3))
    assert found.stages[0].kinds[1] is not LayerType.SAMPLES
    moved = (2 / 9 + 2 / 9 + 1 + 2 / 3) * 6 * 8 / 1000
    assert found.samples_per_second == pytest.approx(6 / (6 + moved + 0.5 / 3))


def test_without_a_split_profile_and_prediction_are_those_of_data_parallelism():
    question, plan = asked(bandwidth=100.0)
    found = channel_splits(question, plan)
    plain = tuple(
        replace(each, kinds=(LayerType.SAMPLES,) * len(each.units)) for each in found.stages
    )
    same = split_profile(question.profile, plain)
    assert same == question.profile
    assert predict(same, question.cluster, plan) == predict(
        question.profile, question.cluster, plan
    )


def test_a_reason_names_layers_gain_and_weights():
    question, plan = asked()
    assert split_reason(question, plan) == (
        "Split by channels over the replicas instead of copied, of stage 0 fc by input channels: "
        "that would make 3.78 times as many samples/s by calculation, and the largest replicas "
        "would hold 500 bytes of these weights instead of 1,000 bytes. Runs split linear "
        "and embedding layers where a plan is made so (--split-channels, More options)."
    )


def test_a_layer_that_is_a_number_is_called_a_layer():
    question, plan = asked()
    layers = [replace(each, name=str(n)) for n, each in enumerate(question.profile.layers)]
    numbered = replace(question, profile=question.profile.with_layers(layers))
    assert " of stage 0 layer " in split_reason(numbered, plan)


def test_a_plan_has_the_splits_that_are_asked_for_and_is_predicted_with_them():
    """A run passes half of both rows of 8 bytes on, 4 bytes forward and backward; of partial sums
    and of their gradient it moves the other's row of 8: 24 bytes at 100 bytes/s, each way."""
    question, plan = asked()
    asking = replace(question, split_channels=True)
    found = with_splits(asking, asking.predict(plan))
    assert found.plan.splits == (LayerSplit("fc", LayerType.INPUTS),)
    assert found.samples_per_second == pytest.approx(2 / (3 + 0.24 + 0.25))
    assert found.sent_bytes == 2 * (2 * 4 + 2 * 8)
    assert with_splits(question, question.predict(plan)).plan == plan
    assert "fc by input channels; 3.87 times" in split_reason(question, found.plan)
    (answer,) = rank(replace(asking, planner="data-parallel", schedule=plan.schedule))
    said = "Each of 2 devices runs the whole model, its part of 1 split layer: "
    assert answer.reasons[0].startswith(said)
    assert from_json(Plan, to_json(Plan, found.plan)) == found.plan


def test_the_largest_slice_computes_longest():
    """Three quarters of the channels: 3 s become 4.5 s; the smaller replica gives 3/4 of its own
    row of 8 bytes and takes them back, and rows of 8 bytes are added up and gathered; the update is
    of 3/4."""
    question, plan = asked()
    split = replace(plan, splits=(LayerSplit("fc", LayerType.INPUTS, (1, 3)),))
    exchanged = (2 * 3 / 4 * 8 + 2 * 8) / 100
    rate = question.predict(split).samples_per_second
    assert rate == pytest.approx(2 / (4.5 + exchanged + 0.375))


def test_kinds_that_runs_do_not_split_are_not_in_plans():
    layers = (WIDE[0], replace(WIDE[1], kind="Conv2d"))
    question, plan = asked(layers)
    assert channel_splits(question, plan) is not None
    asking = replace(question, split_channels=True)
    assert with_splits(asking, asking.predict(plan)).plan == plan


def test_reasons_of_an_answer_say_so():
    question, _ = asked()
    (answer,) = rank(replace(question, planner="data-parallel", schedule="1f1b-flush"))
    assert sum("Split by channels" in reason for reason in answer.reasons) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"recompute": True},
        {"shard_state": True},
        {"partition": Partition((Stage(0, 2, (0,)),))},
        {"partition": Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,))))},
        {"schedule": "2bw", "partition": Partition((Stage(0, 1, (2,)), Stage(1, 2, (0, 1))))},
    ],
)
def test_nothing_is_told_where_replicas_do_not_meet(change):
    question, plan = asked(speeds=(1.0, 1.0, 1.0))
    assert split_reason(question, replace(plan, **change)) == ""


def test_vocabularies_are_split_and_what_lies_between_is_copied():
    layers = (
        Layer("words", "Embedding", 0.1, 0.1, 100, 1_000_000),
        Layer("lstm", "LSTM", 1.0, 2.0, 100, 500),
        Layer("scores", "Linear", 1.0, 2.0, 800, 1_000_000),
        Layer("loss", "relu", 0.1, 0.1, 800, 0),
    )
    question, plan = asked(layers, bandwidth=1e4)
    found = channel_splits(question, plan)
    (stage,) = found.stages
    assert [layers[unit.first].name for unit, _ in stage.split] == ["words", "scores"]
    assert stage.kinds[1] is LayerType.SAMPLES
    assert found.gain > 10


def test_pipelines_split_a_stage_that_is_replicated_by_its_own_count():
    layers = (*WIDE, Layer("last", "LSTM", 3.0, 3.0, 8, 1000))
    question, plan = asked(layers, speeds=(1.0, 1.0, 1.0), batch=4)
    stages = (Stage(0, 2, (0, 1)), Stage(2, 3, (2,)))
    found = channel_splits(question, replace(plan, partition=Partition(stages)))
    first, last = found.stages
    assert first.kinds == (LayerType.SAMPLES, LayerType.INPUTS)
    assert (first.replicas.num_microbatches, first.replicas.num_rounds) == (4, 2)
    assert not list(last.split)


def test_a_stage_alone_meets_once_per_round_without_a_flush():
    question, plan = asked(schedule="pipedream", batch=1)
    found = channel_splits(question, plan)
    assert found.stages[0].replicas.num_microbatches == 2
    assert found.gain > 3


@pytest.mark.parametrize("model", ["alexnet", "vgg16"])
@published
def test_fully_connected_layers_are_split_on_slow_links_alone(model):
    slow, fast = (Cluster((Level(8, bandwidth),), Device()) for bandwidth in (1e9, 1e11))
    profile = at_batch(load(model), 64)
    plan = Plan("", data_parallel(profile, slow), "1f1b-flush", 64, 16)
    found = channel_splits(Question(profile, slow), plan)
    split = [found.profile.layers[unit.first].kind for unit, _ in found.stages[0].split]
    assert split == ["Linear"] * 3
    assert found.gain > 1.5
    assert channel_splits(Question(profile, fast), plan) is None


@pytest.mark.parametrize("bandwidth", [1e8, 1e9, 1e10])
@published
def test_convolutions_of_resnet_are_not_split(bandwidth):
    profile = at_batch(load("resnet50"), 64)
    cluster = Cluster((Level(8, bandwidth),), Device())
    plan = Plan("", data_parallel(profile, cluster), "1f1b-flush", 64, 16)
    found = channel_splits(Question(profile, cluster), plan)
    split = found.stages[0].split if found else ()
    assert not [unit for unit, _ in split if profile.layers[unit.first].kind == "Conv2d"]


@published
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush"])
def test_every_split_of_a_published_profile_pays(schedule):
    """None is left whose layer is as fast whole."""
    slow = Cluster((Level(8, 1e9),), Device())
    profile = at_batch(load("alexnet"), 64)
    plan = Plan("", data_parallel(profile, slow), schedule, 64, 16)
    asking = replace(Question(profile, slow), split_channels=True)
    plain = asking.predict(plan)
    found = with_splits(asking, plain)
    assert found.samples_per_second > plain.samples_per_second
    for each in found.plan.splits:
        fewer = tuple(other for other in found.plan.splits if other != each)
        without = asking.predict(replace(found.plan, splits=fewer))
        assert without.samples_per_second < found.samples_per_second


def test_a_reason_says_where_runs_exchange_too_much_for_a_split():
    """Of 1200 bytes between two layers each keeps its channels by calculation; a run passes them
    by samples, which takes longer than the sums of both."""
    layers = (WIDE[0], replace(WIDE[1], name="wide", output_bytes=1200), WIDE[1])
    question, plan = asked(layers)
    assert channel_splits(question, plan) is not None
    asking = replace(question, split_channels=True)
    assert with_splits(asking, asking.predict(plan)).plan == plan
    assert split_reason(asking, plan).endswith("none of those that they split pays.")
