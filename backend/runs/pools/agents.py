"""The agents of a run that a pool's jobs carry: one on each machine of a job."""

from backend.runs.request.spec import RunSpec


def agent_name(run_id: int, place: int) -> str:
    """Known before a job starts, and the same in the run's next job: that finds what an agent of
    the last one had not told, and waits until that one is surely gone."""
    return f"run-{run_id}.{place}"


def agents_of(run_id: int, spec: RunSpec) -> tuple[str, ...]:
    """The names of all, the one that leads a profile first; () where no pool carries the run."""
    if spec.pool is None:
        return ()
    return tuple(agent_name(run_id, place) for place in range(spec.pool.nodes))
