"""The codec of sums as it is written, what it sends, and where it cannot be."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.planning.codec_of_sums import CodecOfSums, read_codec_of_sums
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.rounded_sums import RoundedSums
from backend.planning.savings import MemorySaving
from backend.planning.thresholds import Thresholds
from backend.prediction.answer import rank
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.prediction.same_updates import goes_on_from
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

BYTES = 8_000_000
PROFILE = Profile(
    "two",
    ModelGraph(
        tuple(Layer(f"l{n}", "Linear", 1e-3, 2e-3, 1000, BYTES // 2) for n in range(2)), ((0, 1),)
    ),
    4,
)
SLOW = Cluster((Level(2, 1e8, 1e-3),))
PARALLEL = Plan("", Partition((Stage(0, 2, (0, 1)),)), "1f1b-flush", 4, 2)
CODED = replace(PARALLEL, codec_of_sums=Thresholds(0.005))


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("", None),
        ("dct", Thresholds()),
        ("dct:keep=0.01", Thresholds(0.01)),
        (" dct: every=7, keep=1 ", Thresholds(1.0, 7)),
        ("bf16", RoundedSums("bf16")),
        (" fp16 ", RoundedSums("fp16")),
        ("auto", None),
    ],
)
def test_it_is_read(text: str, codec: CodecOfSums | None) -> None:
    assert read_codec_of_sums(text) == codec
    assert codec is None or read_codec_of_sums(codec.words) == codec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("top", "no codec of sums 'top'"),
        ("dct:keep=0", "share of 0"),
        ("dct:keep=1.5", "share of 1.5"),
        ("dct:keep=nan", "share of nan"),
        ("dct:every=0", "every 0 updates"),
        ("dct:every=x", "'every=x' has no number"),
        ("dct:rate=1", "no setting 'rate'"),
        ("bf16:keep=1", "no setting 'keep'"),
    ],
)
def test_what_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as fault:
        read_codec_of_sums(text)
    assert fault.value.advice


def test_bytes_and_seconds_of_a_sum() -> None:
    """Half a percent with its places is a hundredth of what a ring sends between two replicas."""
    plain, coded = predict(PROFILE, SLOW, PARALLEL), predict(PROFILE, SLOW, CODED)
    assert plain.sent_bytes == pytest.approx(2 * BYTES)
    assert coded.sent_bytes == pytest.approx(2 * BYTES / 100)
    assert coded.plain_bytes == pytest.approx(plain.sent_bytes)
    gathering = 1e-3 + BYTES / 100 / 1e8
    assert coded.seconds_per_minibatch == pytest.approx(6e-3 + gathering, rel=0.01)
    assert coded.seconds_per_minibatch < plain.seconds_per_minibatch / 5
    assert coded.memory_bytes[0] == plain.memory_bytes[0] + BYTES  # what was not sent


def test_no_more_is_sent_than_all_values() -> None:
    """Of 60 % the places would take more: then all go, which between two is the ring's sum."""
    whole = predict(PROFILE, SLOW, replace(PARALLEL, codec_of_sums=Thresholds(0.6)))
    assert whole.sent_bytes == pytest.approx(whole.plain_bytes)


def test_planners_take_it_where_replicas_sum() -> None:
    asked = Question(PROFILE, SLOW, "data-parallel", codec_of_sums="dct:keep=0.005")
    [found] = rank(asked)
    assert found.prediction.plan.codec_of_sums == Thresholds(0.005)
    assert not found.prediction.plan.shard_state
    straight = replace(asked, planner="straight")
    assert rank(straight)[0].prediction.plan.codec_of_sums is None


def test_sharded_state_is_refused() -> None:
    with pytest.raises(InvalidInput, match="sharded state each makes a part"):
        Question(PROFILE, SLOW, shard_state=MemorySaving.ALWAYS, codec_of_sums="dct")
    with pytest.raises(InvalidInput, match="sharded state each makes a part"):
        predict(PROFILE, SLOW, replace(CODED, shard_state=True))
    alone = replace(CODED, partition=Partition((Stage(0, 2, (0,)),)))
    with pytest.raises(InvalidInput, match="no stage has several replicas"):
        predict(PROFILE, SLOW, alone)


def test_another_codec_is_another_rule() -> None:
    assert not goes_on_from(CODED, PARALLEL)
    assert goes_on_from(CODED, replace(CODED, planner="other"))
