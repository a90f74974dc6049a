"""What the ranks told and how they ended, and who was the first cause."""

import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.attempts.checkpoints import FAULTS
from backend.runs.events import Event, Finished, Heartbeat, RankError, Rescuing, Started
from backend.runs.run import RunError
from workers.supervisor.state.rank_states import (
    ECHO,
    KILLING,
    LOADING,
    RESCUE,
    SETTLE,
    SILENCE,
    STALL,
    RankStates,
)


def heard(ranks: RankStates, now: float, *told: Event) -> RankStates:
    return ranks.hear([(event.rank, event) for event in told], now)


def two_ranks(stall: float = STALL) -> RankStates:
    ranks = RankStates(world_size=2, begun=0.0, stall=stall)
    return heard(ranks, 1.0, Started(0), Started(1))


def kind(ranks: RankStates) -> str:
    cause = ranks.cause()
    return cause.kind if cause else ""


def test_all_ranks_must_start_before_the_run_is_running():
    ranks = RankStates(world_size=2, begun=0.0)
    ranks = heard(ranks, 1.0, Started(0))
    assert not ranks.all_started
    ranks = heard(ranks, 1.0, Started(1))
    assert ranks.all_started


def test_success_needs_the_word_and_the_exit_of_every_rank():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, Finished(0, 3))
    ranks = heard(ranks, 2.0, Finished(1, 3))
    assert not ranks.all_finished
    ranks = ranks.exited({0: 0}, 2.0)
    assert not ranks.all_finished
    ranks = ranks.exited({0: 0, 1: 0}, 2.0)
    assert ranks.all_finished
    assert ranks.error(3.0) is None


def test_an_exit_with_code_0_before_the_work_was_done_is_a_failure():
    ranks = two_ranks()
    ranks = ranks.exited({1: 0}, 2.0)
    error = ranks.error(2.0 + SETTLE)
    assert error is not None
    assert error.kind == "RankEnded"
    assert "rank 1 ended with exit code 0" in error.message


def test_the_cause_waits_for_the_other_ranks_to_be_heard():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, RankError(0, "PeerLost", "Connection closed by peer"))
    assert ranks.error(2.0) is None
    ranks = ranks.exited({0: 1, 1: -9}, 2.1)
    error = ranks.error(2.0 + SETTLE)
    assert error is not None
    assert error.message == "rank 1 was killed by signal 9"
    assert "memory" in error.advice


def test_a_rank_that_somebody_else_ended_may_be_started_again():
    """As where a service manager ends an agent of two hosts, and its ranks with it."""
    ranks = two_ranks().exited({1: -signal.SIGTERM}, 2.0)
    error = ranks.error(2.0 + SETTLE)
    assert error is not None
    assert (error.kind, error.message) == ("RankKilled", "rank 1 was killed by signal 15")
    assert error.kind in FAULTS
    assert "scheduler" in error.advice


def test_a_rank_that_raised_is_blamed_before_a_peer_that_lost_it():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, RankError(0, "RankFailed", "[gloo] Connection reset by peer"))
    ranks = heard(ranks, 2.1, RankError(1, "ModelRaised", "ValueError: boom", "", "Traceback"))
    error = ranks.error(2.0 + SETTLE)
    assert error is not None
    assert (error.kind, error.detail) == ("ModelRaised", "Traceback")


def test_an_abort_after_a_reported_failure_is_not_the_cause():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, RankError(1, "ModelRaised", "ValueError: boom"))
    ranks = ranks.exited({0: -signal.SIGABRT, 1: 1}, 2.1)
    assert kind(ranks) == "ModelRaised"


def test_a_lone_echo_is_better_than_nothing():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, RankError(0, "PeerLost", "Connection closed by peer"))
    assert ranks.error(1.9 + ECHO) is None
    error = ranks.error(2.0 + ECHO)
    assert error is not None
    assert error.kind == "PeerLost"
    assert ranks.exited({0: 1, 1: 1}, 2.1).error(2.0 + SETTLE) is not None


def test_an_end_that_is_told_late_is_the_cause_of_an_echo():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, RankError(0, "PeerLost", "Connection closed by peer"))
    ranks = ranks.exited({0: 1}, 2.1)
    assert ranks.error(4.0) is None
    error = ranks.exited({1: -9}, 4.0).error(4.0)
    assert error is not None
    assert error.message == "rank 1 was killed by signal 9"


def test_a_full_disk_has_its_own_name_whoever_met_it():
    ranks = two_ranks()
    ranks = heard(
        ranks, 2.0, RankError(0, "RankFailed", "OSError: [Errno 28] No space left on device")
    )
    assert kind(ranks) == "DiskFull"


def test_a_limit_that_was_exceeded_is_the_cause_at_once_whatever_the_ranks_say():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, RankError(0, "ModelRaised", "bad width"))
    ranks = ranks.exited({1: -signal.SIGKILL}, 2.0)
    ranks = replace(ranks, limit=RunError("OutOfTime", "too long"))
    assert ranks.error(2.0) == ranks.cause() == ranks.limit


NODE_LOST = RunError("NodeLost", "host-1 is gone")


def test_a_lost_node_is_the_cause_once_there_was_time_to_save_what_is_left():
    ranks = two_ranks().limits(NODE_LOST, 2.0).limits(RunError("OutOfTime", "late"), 3.0)
    assert ranks.error(2.0) is None
    assert ranks.error(2.0 + SETTLE) == ranks.cause() == NODE_LOST
    ranks = heard(ranks, 2.1, Rescuing(0))
    assert ranks.error(1.9 + RESCUE) is None
    assert ranks.error(2.0 + RESCUE) == NODE_LOST
    assert ranks.exited({0: 1}, 4.0).error(4.0) == NODE_LOST


def test_silence_after_the_start_is_a_hang():
    ranks = two_ranks()
    ranks = heard(ranks, 50.0, Heartbeat(0))
    assert ranks.error(1.0 + SILENCE) is None
    error = ranks.error(1.0 + SILENCE + 1)
    assert error is not None
    assert error.kind == "RankHung"
    assert "rank 1" in error.message


def test_loading_may_take_longer_than_a_heartbeat():
    ranks = RankStates(world_size=1, begun=0.0)
    assert ranks.error(SILENCE + 1) is None
    assert ranks.error(LOADING + 1) is not None


def test_a_finished_rank_may_be_silent():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, Finished(0))
    ranks = heard(ranks, 200.0, Heartbeat(1))
    assert ranks.error(201.0) is None


@given(
    code=st.integers(-64, 255),
    echo=st.booleans(),
    said=st.sampled_from([None, "ModelRaised", "LossNotFinite"]),
)
def test_trouble_always_ends_in_a_readable_error(code: int, echo: bool, said: str | None):
    ranks = two_ranks()
    if echo:
        ranks = heard(ranks, 2.0, RankError(0, "PeerLost", "Connection closed by peer"))
    if said:
        ranks = heard(ranks, 2.0, RankError(1, said, "what happened"))
    ranks = ranks.exited({1: code}, 2.5)
    error = ranks.error(2.5 + SETTLE)
    assert error is not None
    assert error.message
    if said and -code not in KILLING:
        assert error.kind == said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_the_signal_is_named(number: signal.Signals):
    ranks = two_ranks()
    ranks = ranks.exited({0: -number}, 2.0)
    cause = ranks.cause()
    assert cause is not None
    assert f"signal {int(number)}" in cause.message


def test_an_exit_that_is_seen_before_the_last_words_is_no_failure():
    ranks = two_ranks()
    ranks = heard(ranks, 2.0, Finished(0))
    ranks = ranks.exited({0: 0, 1: 0}, 2.0)
    assert ranks.error(2.1) is None
    ranks = heard(ranks, 2.2, Finished(1))
    assert ranks.all_finished
    assert ranks.cause() is None


def test_a_rank_that_has_no_actions_left_may_save_for_as_long_as_that_takes():
    ranks = two_ranks(stall=30.0)
    for rank in (0, 1):
        ranks = heard(ranks, 2.0, Heartbeat(rank, 7))
    for second in range(4, 400, 2):
        for rank in (0, 1):
            ranks = heard(ranks, float(second), Heartbeat(rank, None))
        assert ranks.error(float(second)) is None


def test_a_rank_that_lives_and_finishes_nothing_hangs():
    ranks = two_ranks(stall=30.0)
    for second in range(2, 40, 2):
        ranks = heard(ranks, float(second), Heartbeat(0, second))
        ranks = heard(ranks, float(second), Heartbeat(1, min(second, 6)))
    assert ranks.error(36.0) is None
    error = ranks.error(37.0)
    assert error is not None
    assert (error.kind, "rank 1 has finished no action for 31 s") == ("RankHung", error.message)
