"""What a fault made on purpose is, and what must hold after it."""

from collections.abc import Callable
from dataclasses import dataclass

from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from tests.soak.site import Site

Curve = list[tuple[int, float]]
Figures = dict[str, float]
Make = Callable[[Site, Curve], Figures]


@dataclass(frozen=True, slots=True)
class Fault:
    """`make` returns seconds by what they are of; `bars` are the most that they may be.

    ranks   of the run that is disturbed, whose undisturbed losses `make` is given
    agents  that there are
    lease   of theirs, in seconds
    times   that it is made
    """

    make: Make
    bars: Figures
    ranks: int = 2
    agents: tuple[str, ...] = ("a",)
    lease: float = 6.0
    times: int = 5


def equal(there: Site, run_id: int, undisturbed: Curve) -> None:
    """The run succeeded with the very losses of one that nobody disturbed."""
    run = there.final(run_id)
    assert run.state is RunState.SUCCEEDED, run.error
    assert there.curve(run_id) == undisturbed, "the loss curve is another one"


def told_once(there: Site, run_id: int) -> None:
    """Every line of the log is numbered through, and no line of the agent came twice."""
    lines = list(there.backend.runs.logs.every(run_id))
    assert [line.seq for line in lines] == list(range(1, len(lines) + 1))
    said = [(line.time, line.text) for line in lines if line.rank is None]
    assert len(said) == len(set(said))


def each_once(there: Site, runs: list[Run]) -> None:
    """The runs succeeded, each step and line told once, whatever the database and Redis did."""
    for run in runs:
        found = there.final(run.id)
        assert found.state is RunState.SUCCEEDED, found.error
        outcomes = [attempt.outcome for attempt in there.backend.runs.attempts(run.id)]
        assert outcomes[-1] == "succeeded"
        assert set(outcomes[:-1]) <= {"restarted"}  # by a machine that had no time for a lease
        steps = [step for step, _ in there.curve(run.id)]
        assert steps == list(range(len(steps)))
        told_once(there, run.id)


def undisturbed(there: Site, spec: TrainSpec) -> Curve:
    """The losses of a run that nothing happened to; on a machine that is too busy to keep a
    lease it takes several."""
    while True:
        run = there.final(there.backend.runs.submit(spec).id)
        if run.error is None and run.attempt == 1:
            return there.curve(run.id)


def story(there: Site, run_id: int, num_lines: int = 15) -> str:
    """How a run came to its end: its attempts, its error and the last lines of its log."""
    run = there.backend.runs.get(run_id)
    lines = list(there.backend.runs.logs.every(run_id))[-num_lines:]
    attempts = [
        f"  attempt {one.number} on {one.node}: {one.outcome}, {one.error and one.error.kind}"
        for one in there.backend.runs.attempts(run_id)
    ]
    said = [f"  {line.time:.2f} {line.rank} {line.text}" for line in lines]
    return "\n".join([f"run {run_id}: {run.state.value}, {run.error}", *attempts, *said])
