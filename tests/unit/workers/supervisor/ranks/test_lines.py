"""Lines come one by one, cut where they are endless, and stop where the pipe ends."""

import os
from typing import IO

from workers.supervisor.ranks.lines import MAX_LINE, MAX_WAITING, Lines


def pipe() -> tuple[IO[str], IO[str]]:
    read, write = os.pipe()
    return os.fdopen(read, encoding="utf-8", errors="replace"), os.fdopen(write, "w")


def test_lines_of_two_ranks_keep_their_own_order():
    lines = Lines()
    for rank in (0, 1):
        read, write = pipe()
        lines.listen(rank, read)
        with write:
            write.write(f"first {rank}\nsecond {rank}\n")
    heard = lines.rest()
    assert [h.text for h in heard if h.rank == 0] == ["first 0", "second 0"]
    assert [h.text for h in heard if h.rank == 1] == ["first 1", "second 1"]


def test_a_last_line_without_newline_is_kept():
    lines = Lines()
    read, write = pipe()
    lines.listen(0, read)
    with write:
        write.write("half a li")
    assert [h.text for h in lines.rest()] == ["half a li"]


def test_an_endless_line_is_cut():
    lines = Lines()
    read, write = pipe()
    lines.listen(0, read)
    with write:
        write.write("x" * (2 * MAX_LINE + 1))
    assert [len(h.text) for h in lines.rest()] == [MAX_LINE, MAX_LINE, 1]


def test_a_flood_waits_instead_of_filling_the_memory():
    lines = Lines()
    read, write = pipe()
    lines.listen(0, read)
    with write:
        write.writelines(f"{n}\n" for n in range(MAX_WAITING))
        write.flush()
        first = lines.take(5)
        write.writelines(f"{n}\n" for n in range(MAX_WAITING, MAX_WAITING + 500))
    heard = first + lines.rest(10)
    assert [int(h.text) for h in heard] == list(range(MAX_WAITING + 500))


def test_take_comes_back_without_a_line():
    assert Lines().take(0.01) == []
