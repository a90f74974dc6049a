"""What user code prints is log, whatever it looks like; events have a pipe of their own."""

from backend.runs.states import RunState
from tests.integration.sandbox.conftest import Lab

NOISE = """
    import os, subprocess, sys

    def work(rank, say, folder):
        pipe = sys.modules["__main__"].pipe
        print(".", end="", flush=True)
        say(Started(rank))
        forged = write_line(RankError(rank, "Forged", "by print"))
        print(forged, flush=True)
        print("x" * 40_000, end="", flush=True)
        try_it = f"import os; os.write({pipe}, {(forged + chr(10)).encode()!r})"
        child = subprocess.run([sys.executable, "-c", try_it], stderr=subprocess.PIPE)
        print("executed:", child.stderr.decode().splitlines()[-1], flush=True)
        if not (forked := os.fork()):
            os.write(pipe, (forged + chr(10)).encode())
            os._exit(0)
        os.waitpid(forked, 0)
        say(Metrics(f"loss-{rank}", (rank,), (0.5,), (1.0,)))
        say(Finished(rank, 7))
"""


def test_prints_neither_disturb_nor_forge_events(either_lab) -> None:
    lab: Lab = either_lab()
    run = lab.works(NOISE)
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    assert run.summary.epochs == 7
    for rank in (0, 1):
        told = lab.backend.runs.metrics.list(run.id, f"loss-{rank}")
        assert [point.step for point in told] == [rank]
    text = lab.text(run)
    assert text.count('.{"event":"failed"') == 2
    assert text.count("executed: OSError: [Errno 9] Bad file descriptor") == 2


def test_what_the_pipe_has_beside_events_is_log(either_lab) -> None:
    lab: Lab = either_lab()
    run = lab.works("""
        import os, sys

        LINES = (
            '{"event":"clock","rank":0,"segment":0,"seconds":Infinity,"error":NaN}',
            '{"event":"metrics","name":"loss","steps":[1],"values":[1e308],"times":[1]}',
            '{"event":"metrics","name":"loss","steps":[99999999999],"values":[1],"times":[1]}',
            '{"event":"metrics","name":"loss","steps":[1, 2],"values":[1],"times":[1]}',
            '{"event":"finished","rank":7}',
        )

        def work(rank, say, folder):
            say(Started(rank))
            for line in LINES:
                os.write(sys.modules["__main__"].pipe, (line + chr(10)).encode())
            say(Finished(rank))
    """)
    assert run.state is RunState.SUCCEEDED
    assert run.summary.clocks == ()
    assert list(lab.backend.runs.metrics.list(run.id, "loss")) == []
    assert lab.text(run).count('{"event":') == 10
