"""A home of two people with several models, plans, runs, a sweep and what a team adds to them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import sin

from backend.bootstrap import Backend
from backend.cluster.presets import preset
from backend.people.rights import Actor, Role
from backend.prediction import answer
from backend.prediction.question import Question
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.runs.sweeps.axes import read_axis
from backend.runs.sweeps.sweep import Early, Sweep, SweepSpec
from backend.runs.use import Use, UsePoint
from tests.app import seed
from tests.unit.app.models import transformer

PASSWORD = "nine quiet stages"
AXES = ("lr=0.1,0.03,0.01", "schedule=pipedream,gpipe")
LOSSES = (0.52, 0.21, 0.93, 0.34)


@dataclass(frozen=True, slots=True)
class Team:
    """Ids of what there is, and the secrets of the browsers of Ada (admin) and Ed (editor)."""

    seeded: seed.Seeded
    folded: int
    big: int
    sweep: Sweep
    live: int
    again: int
    ada: str
    ed: str


def fill(backend: Backend) -> Team:
    """Ada's runs in every state; Ed's again by the same plan, and his sweep."""
    ada, ed = (come_in(backend, *who) for who in (("Ada", Role.ADMIN), ("Ed", Role.EDITOR)))
    hers, his = (backend.acting(acting(backend, secret)) for secret in (ada, ed))
    found = seed.everything(hers)
    profile = hers.profiles.get(found.profile)
    seed.another_plan(hers, profile)
    plan = hers.plans.get(found.plan)
    again = seed.succeeded(his, found.definition, plan)
    live = seed.running(his, found.definition, plan)
    live.logs([(None, time.time(), "two ranks"), (0, time.time(), "listening to rank 1")])
    live.use([(0, point) for point in used(2)])
    backend.use.keep_of_node(seed.NODE, [(0, point) for point in used(1, "machine")])
    definition = hers.definitions.add_zoo("gpt2")
    big = hers.profiles.add(transformer(71), definition.id).id
    sweep = swept(his, found)
    return Team(found, folded(hers, profile.id), big, sweep, live.run.id, again, ada, ed)


def come_in(backend: Backend, name: str, role: Role) -> str:
    """The secret of the browser of a new person."""
    _, link = backend.team.add(name, role)
    return backend.accounts.accept(link, "", PASSWORD)


def acting(backend: Backend, secret: str) -> Actor:
    """Who signed in with this browser."""
    found = backend.accounts.person(secret)
    assert found
    return found[0].actor()


def used(ranks: int, name: str = "") -> Sequence[UsePoint]:
    """Ten minutes of use that rises and falls, a point every 5 s."""
    now = time.time()
    return [
        UsePoint(
            now - 600 + 5 * step,
            tuple(
                Use(
                    name or f"rank {rank}",
                    0.5 + 0.4 * sin(step / 9 + rank),
                    (1.1 + 0.2 * rank) * 2**30,
                    4.0 * 2**30,
                    received=3e6 * (1 + rank),
                    sent=2e6 * (1 + rank),
                )
                for rank in range(ranks)
            ),
        )
        for step in range(120)
    ]


def folded(backend: Backend, profile_id: int) -> int:
    """A kept plan with a stage of many replicas: its id."""
    profile, cluster = backend.profiles.get(profile_id).profile, preset("cluster-a", 4)
    found = answer.rank(Question(profile, cluster, planner="pipedream", schedule="pipedream"))
    return backend.plans.save(profile_id, cluster, found[0].prediction).id


def swept(backend: Backend, found: seed.Seeded) -> Sweep:
    """Four of six runs have ended: their losses are `LOSSES`."""
    plan = backend.plans.get(found.plan)
    base = TrainSpec(found.definition, plan.plan, plan.id, target_accuracy=0.95)
    spec = SweepSpec(base, tuple(map(read_axis, AXES)), early=Early(first=True))
    sweep = backend.sweeps.start(spec, "rates and schedules")
    for number, loss in zip(sweep.run_ids, LOSSES, strict=False):
        attempt = seed.claim(backend, backend.runs.get(number))
        summary = RunSummary(metrics={HELD_OUT_LOSS: loss}, samples_per_second=1322 - 200 * loss)
        attempt.finish(RunState.SUCCEEDED, summary)
    return sweep
