"""Two at once, a queue, and a refusal at once for the rest."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Lock

import pytest
from argon2 import PasswordHasher

from backend.few_at_once import FewAtOnce, TooBusy
from backend.people import secret


def test_a_queue_that_is_full_refuses_at_once() -> None:
    few, entered, leave = FewAtOnce("tests", most=1, waiting=0), Event(), Event()

    def work() -> None:
        with few.turn():
            entered.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(work)
        entered.wait()
        with pytest.raises(TooBusy, match="too many ask for tests"), few.turn():
            pass
        leave.set()
        first.result()
    with few.turn():
        pass


def test_sixty_sign_ins_at_once_hash_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, all_came, pair = Lock(), Event(), Barrier(2, timeout=240)
    inside, most, came = 0, 0, 0

    class Counting(PasswordHasher):
        def verify(self, kept: str | bytes, password: str | bytes) -> bool:
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            all_came.wait()
            pair.wait()  # as many as may
            with lock:
                inside -= 1
            return True

    def sign_in(_: int) -> bool:
        nonlocal came
        try:
            return secret.matches("a password", "a hash")
        except TooBusy:
            with lock:
                came += 1
                if came == 60 - 22:
                    all_came.set()
            return False

    monkeypatch.setattr(secret, "_hasher", Counting())
    with ThreadPoolExecutor(60) as pool:
        answers = list(pool.map(sign_in, range(60)))
    assert (most, answers.count(True), answers.count(False)) == (2, 22, 38)
