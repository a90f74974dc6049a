"""The verdict over the ranks: who was the first cause."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.events import Failed, Finished, Heartbeat, Started
from backend.runs.run import RunError
from workers.supervisor.verdict import LOADING, SETTLE, SILENCE, Tally


def two_ranks() -> Tally:
    tally = Tally(world_size=2, now=0.0)
    for rank in (0, 1):
        tally.hear(rank, Started(rank), 1.0)
    return tally


def kind(tally: Tally) -> str:
    cause = tally.cause()
    return cause.kind if cause else ""


def test_all_ranks_must_start_before_the_run_is_running():
    tally = Tally(world_size=2, now=0.0)
    tally.hear(0, Started(0), 1.0)
    assert not tally.all_started
    tally.hear(1, Started(1), 1.0)
    assert tally.all_started


def test_success_needs_the_word_and_the_exit_of_every_rank():
    tally = two_ranks()
    tally.hear(0, Finished(0, 3), 2.0)
    tally.hear(1, Finished(1, 3), 2.0)
    assert not tally.all_finished
    tally.exited({0: 0}, 2.0)
    assert not tally.all_finished
    tally.exited({0: 0, 1: 0}, 2.0)
    assert tally.all_finished
    assert tally.error(3.0) is None


def test_an_exit_with_code_0_before_the_work_was_done_is_a_failure():
    tally = two_ranks()
    tally.exited({1: 0}, 2.0)
    error = tally.error(2.0 + SETTLE)
    assert error is not None
    assert error.kind == "RankEnded"
    assert "rank 1 ended with exit code 0" in error.message


def test_the_verdict_waits_for_the_other_ranks_to_be_heard():
    tally = two_ranks()
    tally.hear(0, Failed(0, "PeerLost", "Connection closed by peer"), 2.0)
    assert tally.error(2.0) is None
    tally.exited({0: 1, 1: -9}, 2.1)
    error = tally.error(2.0 + SETTLE)
    assert error is not None
    assert error.message == "rank 1 was killed by signal 9"
    assert "memory" in error.advice


def test_a_rank_that_raised_is_blamed_before_a_peer_that_lost_it():
    tally = two_ranks()
    tally.hear(0, Failed(0, "RankFailed", "[gloo] Connection reset by peer"), 2.0)
    tally.hear(1, Failed(1, "ModelRaised", "ValueError: boom", "", "Traceback"), 2.1)
    error = tally.error(2.0 + SETTLE)
    assert error is not None
    assert (error.kind, error.detail) == ("ModelRaised", "Traceback")


def test_an_abort_after_a_reported_failure_is_not_the_cause():
    tally = two_ranks()
    tally.hear(1, Failed(1, "ModelRaised", "ValueError: boom"), 2.0)
    tally.exited({0: -signal.SIGABRT, 1: 1}, 2.1)
    assert kind(tally) == "ModelRaised"


def test_a_lone_echo_is_better_than_nothing():
    tally = two_ranks()
    tally.hear(0, Failed(0, "PeerLost", "Connection closed by peer"), 2.0)
    error = tally.error(2.0 + SETTLE)
    assert error is not None
    assert error.kind == "PeerLost"


def test_a_full_disk_has_its_own_name_whoever_met_it():
    tally = two_ranks()
    tally.hear(0, Failed(0, "RankFailed", "OSError: [Errno 28] No space left on device"), 2.0)
    assert kind(tally) == "DiskFull"


def test_a_limit_that_was_exceeded_is_the_cause_at_once_whatever_the_ranks_say():
    tally = two_ranks()
    tally.hear(0, Failed(0, "ModelRaised", "bad width"), 2.0)
    tally.exited({1: -signal.SIGKILL}, 2.0)
    tally.breach = RunError("OutOfTime", "too long")
    assert tally.error(2.0) == tally.cause() == tally.breach


def test_silence_after_the_start_is_a_hang():
    tally = two_ranks()
    tally.hear(0, Heartbeat(0), 50.0)
    assert tally.error(1.0 + SILENCE) is None
    error = tally.error(1.0 + SILENCE + 1)
    assert error is not None
    assert error.kind == "RankHung"
    assert "rank 1" in error.message


def test_loading_may_take_longer_than_a_heartbeat():
    tally = Tally(world_size=1, now=0.0)
    assert tally.error(SILENCE + 1) is None
    assert tally.error(LOADING + 1) is not None


def test_a_finished_rank_may_be_silent():
    tally = two_ranks()
    tally.hear(0, Finished(0), 2.0)
    tally.hear(1, Heartbeat(1), 200.0)
    assert tally.error(201.0) is None


@given(
    code=st.integers(-64, 255),
    echo=st.booleans(),
    said=st.sampled_from([None, "ModelRaised", "LossNotFinite"]),
)
def test_trouble_always_ends_in_a_readable_error(code: int, echo: bool, said: str | None):
    tally = two_ranks()
    if echo:
        tally.hear(0, Failed(0, "PeerLost", "Connection closed by peer"), 2.0)
    if said:
        tally.hear(1, Failed(1, said, "what happened"), 2.0)
    tally.exited({1: code}, 2.5)
    error = tally.error(2.5 + SETTLE)
    assert error is not None
    assert error.message
    if said and code not in (-4, -7, -8, -9, -11):
        assert error.kind == said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_the_signal_is_named(number: signal.Signals):
    tally = two_ranks()
    tally.exited({0: -number}, 2.0)
    cause = tally.cause()
    assert cause is not None
    assert f"signal {int(number)}" in cause.message


def test_an_exit_that_is_seen_before_the_last_words_is_no_failure():
    tally = two_ranks()
    tally.hear(0, Finished(0), 2.0)
    tally.exited({0: 0, 1: 0}, 2.0)
    assert tally.error(2.1) is None
    tally.hear(1, Finished(1), 2.2)
    assert tally.all_finished
    assert tally.cause() is None


def test_a_rank_that_lives_and_finishes_nothing_hangs():
    tally = two_ranks()
    tally.stall = 30.0
    for second in range(2, 40, 2):
        tally.hear(0, Heartbeat(0, second), float(second))
        tally.hear(1, Heartbeat(1, min(second, 6)), float(second))
    assert tally.error(36.0) is None
    error = tally.error(37.0)
    assert error is not None
    assert (error.kind, "rank 1 has finished no action for 31 s") == ("RankHung", error.message)
