"""Rounded sums: their bytes and seconds, where planners choose them, where they cannot be."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.codec import from_plain, to_plain
from backend.errors import InvalidInput
from backend.planning.codec_of_sums import CodecOfSums
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.rounded_sums import RoundedSums
from backend.planning.savings import MemorySaving
from backend.planning.thresholds import Thresholds
from backend.prediction.answer import cut_by_hand, rank
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.profiles.coding_speed import CodingSpeed
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.request.combinations import check_combinations
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec

BYTES = 8_000_000
LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3, 2e-3, 1000, BYTES // 2) for n in range(2))
FAST = CodingSpeed("bf16", 1e-5, 1e-10, 2e-5, 2e-10)
PROFILE = Profile("two", ModelGraph(LAYERS, ((0, 1),)), 4, coding_speeds=(FAST,))
LATENCY, BANDWIDTH = 1e-3, 1e8
SLOW = Cluster((Level(2, BANDWIDTH, LATENCY),))
FREE = Cluster((Level(2, 1e13, 0.0),))


BF16 = RoundedSums("bf16")


def parallel(replicas: int, codec: CodecOfSums | None = BF16) -> Plan:
    stage = Stage(0, 2, tuple(range(replicas)))
    return Plan("", Partition((stage,)), "1f1b-flush", 4, replicas, codec_of_sums=codec)


@pytest.mark.parametrize(("replicas", "share"), [(2, 0.5), (3, 0.75), (4, 1.0)])
def test_each_gives_two_bytes_a_number_to_each_other_one(replicas: int, share: float) -> None:
    cluster = Cluster((Level(replicas, BANDWIDTH, LATENCY),))
    rounded = predict(PROFILE, cluster, parallel(replicas))
    assert rounded.sent_bytes == replicas * (replicas - 1) * BYTES / 2
    plain = predict(PROFILE, cluster, parallel(replicas, None))
    assert rounded.sent_bytes == pytest.approx(share * plain.sent_bytes)
    assert rounded.plain_bytes == pytest.approx(plain.sent_bytes)
    held = rounded.memory_bytes[0] - plain.memory_bytes[0]
    assert held == replicas * BYTES // 2


def test_buckets_travel_within_the_backward_and_take_the_seconds_of_rounding() -> None:
    """Of two buckets the first is full when a half of the backward is left; behind the last one
    goes the loss."""
    durations = PlanDurations.of(PROFILE, SLOW, parallel(2))
    durations = replace(durations, bucket_bytes=BYTES // 2)
    first, last = durations.pieces(0, (0, 1))
    coding = 5e-5 + 5e-10 * BYTES / 2  # its own once, and what both gave
    way = LATENCY + BYTES / 4 / BANDWIDTH + coding
    loss = 2 * (LATENCY + 2 / BANDWIDTH)
    assert (first.before, last.before) == (pytest.approx(2e-3), 0.0)
    assert first.seconds == pytest.approx(way)
    assert last.seconds == pytest.approx(way + loss)
    unknown = replace(durations, profile=replace(PROFILE, coding_speeds=()))
    assert unknown.pieces(0, (0, 1))[0].seconds == pytest.approx(way - coding)
    whole = LATENCY + BYTES / 2 / BANDWIDTH + 5e-5 + 5e-10 * BYTES
    assert durations.all_reduce(0, (0, 1)) == pytest.approx(whole)


def asked(cluster: Cluster = SLOW, profile: Profile = PROFILE, **more: object) -> Question:
    values = {"planner": "data-parallel", "codec_of_sums": "auto"} | more
    return Question(profile, cluster, **values)  # type: ignore[arg-type]


def chosen(question: Question) -> CodecOfSums | None:
    [found] = rank(question)
    return found.prediction.plan.codec_of_sums


def test_it_is_chosen_where_it_is_faster() -> None:
    [found] = rank(asked())
    assert found.prediction.plan.codec_of_sums == RoundedSums("bf16")
    plain = rank(asked(codec_of_sums=""))[0].prediction
    assert found.prediction.samples_per_second > 1.5 * plain.samples_per_second
    assert any("Replicas sum gradients as bfloat16" in reason for reason in found.reasons)
    by_hand = cut_by_hand(asked(planner=""), "2x2").prediction.plan
    assert by_hand.codec_of_sums == RoundedSums("bf16")


def test_it_is_not_chosen_where_it_is_not() -> None:
    crawling = replace(PROFILE, coding_speeds=(replace(FAST, encode_per_byte=1e-7),))
    for question in (
        asked(FREE),
        asked(planner="straight"),
        asked(profile=crawling),
        asked(profile=replace(PROFILE, coding_speeds=())),
        asked(shard_state=MemorySaving.ALWAYS),
    ):
        assert chosen(question) is None
    fp16 = replace(PROFILE, coding_speeds=(replace(FAST, codec="fp16"),))
    assert chosen(asked(profile=fp16)) is None
    assert chosen(asked(profile=fp16, codec_of_sums="fp16")) == RoundedSums("fp16")


def test_plans_of_before_and_of_both_kinds_are_read() -> None:
    for codec in (None, Thresholds(0.01, 7), RoundedSums("bf16"), RoundedSums("fp16")):
        plan = parallel(2, codec)
        assert from_plain(Plan, to_plain(Plan, plan)) == plan
    old = to_plain(Plan, parallel(2)) | {"codec_of_sums": {"keep": 0.01, "every": 7}}
    assert from_plain(Plan, old).codec_of_sums == Thresholds(0.01, 7)
    for wrong in (3, {"numbers": "bf8"}, {"keep": "much"}):
        with pytest.raises(InvalidInput, match="codec_of_sums"):
            from_plain(Plan, old | {"codec_of_sums": wrong})


def test_what_a_run_cannot_have_is_refused() -> None:
    rule = OptimizerSpec("sgd", 0.1, weight_decay=0.0)
    spec = TrainSpec(1, parallel(2), optimizer=rule)
    check_combinations(spec)
    check_combinations(replace(spec, precision="bfloat16"))
    short = replace(spec, precision="bfloat16", state_precision="bfloat16-masters")
    alone, sharded = parallel(1), replace(parallel(2), shard_state=True)
    for wrong, fault in (
        (short, "those of weights in bfloat16 have no more"),
        (replace(spec, plan=alone), "no stage has several replicas"),
        (replace(spec, plan=sharded), "sharded state each makes a part"),
    ):
        with pytest.raises(InvalidInput, match=fault):
            check_combinations(wrong)
