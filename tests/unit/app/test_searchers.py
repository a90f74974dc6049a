"""Searches in processes of their own answer as they do here, are ended, and are replaced."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server import searchers
from app.server.searchers import QUICK, THOROUGH, SearchBroke, SearcherEnded, Searchers
from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.pipeline.rules.faults import Fault, Rule
from backend.pipeline.verify import ProgramUnsound
from backend.planning.plan import PlanDoesNotFit
from backend.prediction.answer import Reply, at_once, replies
from backend.prediction.question import PLANNER_NAMES
from backend.prediction.watch import Watch
from tests.searched import broken, ended, endless, killed, numbers, refused, until_ended, whose
from tests.unit.prediction.test_alone import SMALL, UNEQUAL


def told(found: Iterable[Reply]) -> list[object]:
    """What was said, without the seconds that it took."""
    return [
        replace(reply.answer, planner_seconds=0.0)
        if reply.answer
        else (type(reply.fault), str(reply.fault), getattr(reply.fault, "advice", ""))
        for reply in found
    ]


@pytest.mark.parametrize("planner", PLANNER_NAMES)
@pytest.mark.parametrize("cluster", [SMALL.cluster, UNEQUAL], ids=["equal", "unequal"])
def test_answers_are_those_of_the_same_search_here(planner: str, cluster: Cluster) -> None:
    question = replace(SMALL, planner=planner, cluster=cluster)
    assert told(THOROUGH.search(replies, question)) == told(replies(question))


def test_first_answers_are_too() -> None:
    found = told(QUICK.search(at_once, SMALL))
    assert found == told(at_once(SMALL))
    assert len(found) == 1


def test_a_fault_comes_with_its_advice_and_the_next_question_is_answered() -> None:
    tiny = Cluster((Level(2, 1e9),), Device("toy", 1000.0))
    question = replace(SMALL, planner="pipedream", cluster=tiny)
    [reply] = THOROUGH.search(replies, question)
    assert isinstance(reply.fault, PlanDoesNotFit)
    with pytest.raises(InvalidInput, match="a batch of no samples") as caught:
        list(THOROUGH.search(refused))
    assert caught.value.advice == "Give one at least."
    assert list(THOROUGH.search(numbers, 3)) == [0, 1, 2]


@given(st.text(), st.text())
def test_an_error_is_the_same_in_another_process(message: str, advice: str) -> None:
    for fault in (InvalidInput(message, advice), SearcherEnded(message, advice)):
        there = pickle.loads(pickle.dumps(fault))
        assert (type(there), str(there)) == (type(fault), str(fault))
        assert there.advice == fault.advice
        assert getattr(there, "__notes__", []) == getattr(fault, "__notes__", [])


def test_an_error_that_is_made_of_other_values_is_too() -> None:
    fault = ProgramUnsound((Fault(0, None, Rule.RANK, "a fault"), Fault(1, 2, Rule.RANK, "more")))
    there = pickle.loads(pickle.dumps(fault))
    assert (str(there), there.faults) == (str(fault), fault.faults)


def test_a_fault_of_ours_comes_with_its_traceback() -> None:
    with pytest.raises(SearchBroke, match=r"(?s)Traceback.*ZeroDivisionError: a fault of ours"):
        list(THOROUGH.search(broken))


def test_what_cannot_be_sent_is_a_fault_here_and_takes_no_searcher() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        list(THOROUGH.search(lambda watch: iter(())))
    assert list(THOROUGH.search(numbers, 1)) == [0]


def test_progress_arrives_and_the_last_of_it_before_an_answer() -> None:
    seen: list[tuple[str, int, int]] = []
    watch = Watch(lambda *far: seen.append(far))
    known = []
    for _ in THOROUGH.search(numbers, 50, watch=watch):
        known.append(seen[-1])
    assert known == [("counting", number, 50) for number in range(50)]


def test_a_search_is_ended_and_what_it_has_is_kept() -> None:
    stop = Event()
    found = []
    for answer in THOROUGH.search(until_ended, watch=Watch(stop=stop.is_set)):
        found.append(answer)
        stop.set()
    assert found == ["first", "last"]
    assert list(THOROUGH.search(numbers, 2)) == [0, 1]  # the next one is not ended with it


def test_one_that_is_ended_before_its_turn_asks_nobody() -> None:
    none = Searchers(1)
    assert list(none.search(numbers, 3, watch=Watch(stop=lambda: True))) == []


def first(searchers: Searchers, name: str = "HOME") -> tuple[int, str | None]:
    [found] = searchers.search(whose, name)
    return found


def test_a_search_that_nobody_reads_is_left_and_its_process_stays() -> None:
    own = Searchers(1)
    process, _ = first(own)
    found = own.search(until_ended)
    assert next(found) == "first"
    found.close()
    assert first(own)[0] == process


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searchers, "PATIENCE", 0.1)
    own = Searchers(1)
    process, _ = first(own)
    found = own.search(endless)
    assert next(found) == "first"
    found.close()
    assert not psutil.pid_exists(process)
    assert first(own)[0] != process


@pytest.mark.parametrize(
    ("make", "asked", "how"), [(killed, (SMALL,), "SIGKILL"), (ended, (), "code 3")]
)
def test_a_process_that_ends_is_said_and_replaced(make, asked, how) -> None:
    own = Searchers(1)
    process, _ = first(own)
    search = own.search(make, *asked)
    assert next(search)
    with pytest.raises(SearcherEnded, match=how) as caught:
        next(search)
    assert "Plan again" in caught.value.advice
    assert first(own)[0] != process


def test_one_that_was_killed_between_two_searches_is_replaced() -> None:
    own = Searchers(1)
    process, _ = first(own)
    os.kill(process, signal.SIGKILL)
    psutil.Process(process).wait(60) if psutil.pid_exists(process) else None
    assert first(own)[0] != process


def test_settings_are_not_handed_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEFLOW_DATABASE_URL", "postgresql://me:secret@host/db")
    monkeypatch.setenv("ELSEWHERE", "is kept")
    own = Searchers(1)
    assert first(own, "STAGEFLOW_DATABASE_URL")[1] is None
    assert first(own, "ELSEWHERE")[1] == "is kept"


def test_as_many_search_at_once_as_there_are_processes_and_the_others_wait() -> None:
    own, stop = Searchers(2), Event()
    watch = Watch(stop=stop.is_set)
    begun = [own.search(until_ended, watch=watch) for _ in "ab"]
    assert [next(search) for search in begun] == ["first", "first"]
    with ThreadPoolExecutor(1) as pool:
        third = pool.submit(first, own)
        time.sleep(0.1)
        assert not third.done()
        stop.set()
        assert [list(search) for search in begun] == [["last"], ["last"]]
        third.result(60)


def test_it_ends_with_who_started_it() -> None:
    """Killed, in the middle of a search: nobody is told."""
    code = (
        "import os, signal; from app.server.searchers import Searchers; "
        "from tests.searched import endless, whose; own = Searchers(1); "
        "[(process, _)] = own.search(whose, 'HOME'); print(process, flush=True); "
        "next(own.search(endless)); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    process = int(done.stdout)
    deadline = time.monotonic() + 30
    while psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
