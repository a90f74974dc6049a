"""A codec is chosen at a cut where coding, sending and reading take less than sending plain."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.catalog import CODECS
from backend.pipeline.codecs.codec import Numbers
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import rank
from backend.prediction.chosen_codecs import chosen_codecs, codec_reason
from backend.prediction.cut_messages import CutMessages, numbers_of
from backend.prediction.predict import predict, predicted_durations
from backend.prediction.question import Question
from backend.profiles.coding_speed import CodingSpeed
from backend.profiles.crossing import Crossing
from backend.units import bytes_text
from tests.app.seed import a_profile

PLAIN = a_profile()
SLOW, FAST = 1.25e7, 1e12
SPEEDS = (
    CodingSpeed("bf16", 1e-6, 2e-11, 1e-6, 2e-11),
    CodingSpeed("int8", 1e-6, 8e-10, 1e-6, 4e-10),
)
PROFILE = replace(PLAIN, coding_speeds=SPEEDS)
STAGES = (Stage(0, 5, (0,)), Stage(5, 12, (1,)), Stage(12, 16, (2,)))
PLAN = Plan("t", Partition(STAGES), "2bw", 16, 4)


def a_question(bandwidth: float, codec: str = "auto", **more: object) -> Question:
    return Question(PROFILE, Cluster((Level(3, bandwidth),)), codec=codec, **more)


def by_hand(cut: int, name: str, bandwidth: float) -> float:
    """Seconds there and back over a cut behind a stage of `PLAN`, from the layers' own bytes."""
    size = PROFILE.layers[PLAN.partition.stages[cut].stop - 1].activation_bytes
    if not name:
        return 2 * size / bandwidth
    (speed,) = [each for each in SPEEDS if each.codec == name]
    sent = CODECS[name].sent_bytes(Flow.ACTIVATION, Numbers(size // 4, 4))
    return 2 * (speed.encoding(size) + sent / bandwidth + speed.decoding(size))


@settings(max_examples=60, deadline=None)
@given(st.floats(1e5, 1e12))
def test_each_cut_has_the_soonest_of_all(bandwidth: float) -> None:
    found = chosen_codecs(a_question(bandwidth), PLAN)
    assert len(found) == 2
    for cut, name in enumerate(found):
        times = {each: by_hand(cut, each, bandwidth) for each in ("", "bf16", "int8")}
        assert times[name] == pytest.approx(min(times.values()), rel=1e-9)


def test_slow_links_are_coded_and_fast_ones_plain() -> None:
    assert chosen_codecs(a_question(1e6), PLAN) == ("int8", "int8")
    assert chosen_codecs(a_question(FAST), PLAN) == ("", "")
    unknown = Question(PLAIN, Cluster((Level(3, SLOW),)), codec="auto")
    assert chosen_codecs(unknown, PLAN) == ("", "")  # nobody measured how fast they are


def test_what_gains_less_than_a_hundredth_of_the_whole_stays_plain() -> None:
    """Over such a link bf16 is sooner read, but what the flush waits for is mostly compute."""
    question = a_question(5e8, planner="straight", schedule="1f1b-flush")
    assert chosen_codecs(question, PLAN) == ("bf16", "bf16")
    plain = rank(replace(question, codec="none"))[0].prediction
    coded = question.predict(replace(plain.plan, codecs=("bf16", "bf16")))
    assert 1 < coded.samples_per_second / plain.samples_per_second < 1.01
    assert rank(question)[0].prediction.plan == plain.plan
    slow = replace(question, cluster=Cluster((Level(3, SLOW),)))
    assert rank(slow)[0].prediction.plan.codecs == ("int8", "int8")


def test_codecs_that_are_not_close_are_never_chosen_however_fast() -> None:
    free = tuple(CodingSpeed(name, 0.0, 0.0, 0.0, 0.0) for name in CODECS)
    question = replace(a_question(1e6), profile=replace(PROFILE, coding_speeds=free))
    found = chosen_codecs(question, PLAN)
    assert {"fp8", "int4"} <= CODECS.keys()
    assert found == ("int8", "int8")


def test_a_profile_of_before_a_codec_predicts_its_bytes_and_says_what_it_does_not_know() -> None:
    """`SPEEDS` are of a profile that knew bf16 and int8 alone."""
    plan = replace(PLAN, codecs=("int4", ""))
    question = a_question(SLOW, "int4,none")
    size = PROFILE.layers[4].activation_bytes
    found = predicted_durations(PROFILE, question.cluster, plan)
    assert found.message_bytes(Message(Flow.ACTIVATION, 0, 0)) == size // 8 + size // 4 // 256 * 4
    assert found.message_bytes(Message(Flow.GRADIENT, 1, 0)) == size // 4 + size // 4 // 256 * 4
    assert found.cut_messages.sending(0, Flow.ACTIVATION) == 0.0
    reason = codec_reason(question, plan)
    assert "Messages are coded as int4, int8 back" in reason
    assert "Profile the model again" in reason
    assert "layer" not in reason
    assert "keeps" not in reason
    top = codec_reason(question, replace(PLAN, codecs=("top5", "")))
    assert "Messages are coded as largest 5 % of each sample" in top
    assert "evaluate the model with it" in top


def test_codecs_that_keep_samples_say_how_much_and_are_for_one_replica_of_a_stage() -> None:
    """The middle stage keeps the samples of both cuts."""
    question = a_question(SLOW, "aq4,aq2")
    plan = replace(PLAN, codecs=("aq4", "aq2"))
    sizes = [PROFILE.layers[stage.stop - 1].activation_bytes // 16 for stage in STAGES[:2]]
    messages = CutMessages(PROFILE, PLAN.partition, plan.codecs)
    kept = [messages.kept_per_sample(stage) for stage in range(3)]
    assert kept == [sizes[0], sum(sizes), sizes[1]]
    reason = codec_reason(question, plan)
    assert "The first epoch goes plain" in reason
    assert f"{bytes_text(sum(sizes))} of each training sample" in reason
    assert question.predict(plan).sent_bytes < question.predict(PLAN).sent_bytes / 4
    two = Partition((Stage(0, 5, (0, 1)), Stage(5, 16, (2,))))
    for refused in (
        Plan("t", two, "2bw", 16, 4, codecs=("aq4",)),
        Plan("t", PLAN.partition, "afp", 16, 4, num_pipelines=2, codecs=("aq2", "")),
    ):
        with pytest.raises(InvalidInput, match="in the next epoch a sample comes to another"):
            question.predict(refused)
    answers = rank(a_question(SLOW, "aq4", planner="straight"))
    assert answers[0].prediction.plan.codecs == ("aq4",) * 2


def test_gradients_have_seconds_of_their_own_where_a_profile_tells_them() -> None:
    back = CodingSpeed("top10", 1.0, 0.0, 2.0, 0.0, "gradient")
    speeds = (CodingSpeed("top10", 3.0, 0.0, 4.0, 0.0, "activation"), back)
    profile = replace(PROFILE, coding_speeds=speeds)
    messages = CutMessages(profile, PLAN.partition, ("top10", ""))
    found = [each(0, flow) for each in (messages.sending, messages.receiving) for flow in Flow]
    assert found == [3.0, 1.0, 4.0, 2.0]


def test_rows_are_the_samples_where_a_profile_does_not_tell_them() -> None:
    assert numbers_of(Crossing(0, (1,), 400), 5) == Numbers(100, 4, 5)
    assert numbers_of(Crossing(0, (1,), 400, rows=20), 5) == Numbers(100, 4, 20, False)
    assert numbers_of(Crossing(0, (1,), 400), 7) == Numbers(100, 4, 1, False)
    assert numbers_of(Crossing(0, (1,), 400, rows=0), 5) == Numbers(100, 4, 0, False)


@pytest.mark.parametrize("planner", ["straight", "best"])
def test_a_plan_with_chosen_codecs_is_no_slower_and_says_what_they_buy(planner: str) -> None:
    plain = rank(a_question(1e6, "none", planner=planner))[0]
    coded = rank(a_question(1e6, planner=planner))[0]
    assert coded.prediction.samples_per_second >= plain.prediction.samples_per_second
    if any(coded.prediction.plan.codecs):
        assert any("Messages are coded as" in reason for reason in coded.reasons)
        assert coded.prediction.plain_bytes is not None
        assert coded.prediction.sent_bytes < coded.prediction.plain_bytes
    fast = rank(a_question(FAST, planner=planner))[0]
    assert not any(fast.prediction.plan.codecs)


def test_seconds_of_coding_are_the_ranks() -> None:
    """Both ends compute longer by what the profile says; the wire has fewer bytes."""
    cluster, coded = Cluster((Level(3, SLOW),)), replace(PLAN, codecs=("int8", ""))
    before, now = (predicted_durations(PROFILE, cluster, plan) for plan in (PLAN, coded))
    size = PROFILE.layers[4].activation_bytes
    message = Message(Flow.ACTIVATION, 0, 0)
    assert before.message_bytes(message) == size
    assert now.message_bytes(message) == size // 4 + size // 4 // 256 * 4
    assert now.cut_messages.sending(0, Flow.ACTIVATION) == SPEEDS[1].encoding(size)
    assert now.cut_messages.receiving(0, Flow.GRADIENT) == SPEEDS[1].decoding(size)
    assert now.message_bytes(Message(Flow.ACTIVATION, 1, 0)) == PROFILE.layers[11].activation_bytes
    both = [predict(PROFILE, cluster, plan) for plan in (PLAN, coded)]
    assert both[1].samples_per_second > both[0].samples_per_second
